/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every attribute of fi_info as a hint, fi_getinfo(3): every offer can be asked
 * for, more than that is refused, less is granted, levels are echoed. Tables
 * say which attribute is of which kind; the offer is taken from fi_getinfo
 * itself.
 */
#include "tests/harness/fixture.h"

namespace
{

class Attribute : public testing::Test
{
protected:
	struct fi_info *offer = nullptr, *hints = nullptr, *got = nullptr;

	void SetUp() override
	{
		renew();
		ASSERT_EQ(0, get());
		offer = fi_dupinfo(got);
		ASSERT_NE(nullptr, offer);
	}

	void TearDown() override
	{
		for (struct fi_info *i : { offer, hints, got }) {
			if (i)
				fi_freeinfo(i);
		}
	}

	/* Hints that ask for nothing. */
	void renew()
	{
		if (hints)
			fi_freeinfo(hints);
		hints = fi_allocinfo();
		hints->fabric_attr->prov_name = strdup(tdt_prov_name());
	}

	int get()
	{
		if (got)
			fi_freeinfo(got);
		got = nullptr;
		return fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &got);
	}
};

/* Amounts: the hint is the least that is asked for. */
struct Amount {
	const char *name;
	size_t *(*at)(struct fi_info *);
	size_t most; /* that can be asked for; 0: what is offered */
};

#define AMOUNT(field, most)                                                    \
	{ #field, [](struct fi_info *i) { return &i->field; }, most }

const Amount amounts[] = {
	AMOUNT(ep_attr->max_msg_size, 0),
	AMOUNT(ep_attr->msg_prefix_size, 0),
	AMOUNT(ep_attr->max_order_raw_size, SIZE_MAX >> 1),
	AMOUNT(ep_attr->max_order_war_size, SIZE_MAX >> 1),
	AMOUNT(ep_attr->max_order_waw_size, SIZE_MAX >> 1),
	AMOUNT(ep_attr->tx_ctx_cnt, 256),
	AMOUNT(ep_attr->rx_ctx_cnt, 256),
	AMOUNT(ep_attr->auth_key_size, 0),
	AMOUNT(tx_attr->inject_size, 4096),
	AMOUNT(tx_attr->size, SIZE_MAX),
	AMOUNT(tx_attr->iov_limit, 0),
	AMOUNT(tx_attr->rma_iov_limit, 0),
	AMOUNT(rx_attr->total_buffered_recv, 0),
	AMOUNT(rx_attr->size, SIZE_MAX),
	AMOUNT(rx_attr->iov_limit, 0),
	AMOUNT(domain_attr->mr_key_size, 0),
	AMOUNT(domain_attr->cq_data_size, 0),
	AMOUNT(domain_attr->cq_cnt, SIZE_MAX),
	AMOUNT(domain_attr->ep_cnt, SIZE_MAX),
	AMOUNT(domain_attr->tx_ctx_cnt, SIZE_MAX),
	AMOUNT(domain_attr->rx_ctx_cnt, SIZE_MAX),
	AMOUNT(domain_attr->max_ep_tx_ctx, 0),
	AMOUNT(domain_attr->max_ep_rx_ctx, 0),
	AMOUNT(domain_attr->max_ep_stx_ctx, SIZE_MAX),
	AMOUNT(domain_attr->max_ep_srx_ctx, SIZE_MAX),
	AMOUNT(domain_attr->cntr_cnt, SIZE_MAX),
	AMOUNT(domain_attr->mr_iov_limit, 0),
	AMOUNT(domain_attr->auth_key_size, 0),
	AMOUNT(domain_attr->max_err_data, SIZE_MAX),
	AMOUNT(domain_attr->mr_cnt, SIZE_MAX),
	AMOUNT(domain_attr->max_ep_auth_key, 0),
};

TEST_F(Attribute, AmountsUpToWhatIsOffered)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 6: A hint that is not zero is met or
	 * refused with -FI_ENODATA; the answer is never less than the hint. */
	ONLY_TANDEM();
	for (const Amount &a : amounts) {
		size_t most = a.most ? a.most : *a.at(offer);

		SCOPED_TRACE(a.name);
		for (size_t ask : { size_t(1), most / 2, most }) {
			if (!ask || ask > most)
				continue;
			renew();
			*a.at(hints) = ask;
			ASSERT_EQ(0, get()) << ask;
			EXPECT_GE(*a.at(got), ask);
		}
		if (most < SIZE_MAX - 1) {
			renew();
			*a.at(hints) = most + 1;
			EXPECT_EQ(-FI_ENODATA, get()) << most + 1;
		}
		renew();
		ASSERT_EQ(0, get());
		EXPECT_EQ(*a.at(offer), *a.at(got)) << "0 asks for nothing";
	}
}

/* Sets of bits, each of which can be asked for or not at all. */
struct Bits {
	const char *name;
	uint64_t *(*at)(struct fi_info *);
	bool whole;    /* the offer names all that can be asked for */
	uint64_t more; /* else: these */
	uint64_t ignored;
};

#define BITS(field, whole, more, ignored)                                      \
	{ #field, [](struct fi_info *i) { return &i->field; }, whole, more,    \
	  ignored }

const uint64_t LEVELS = FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
			FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

/* Capabilities that belong to neither direction, or to one. */
const uint64_t OF_NONE = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV |
			 FI_AV_USER_ID;
const uint64_t OF_TX = FI_SEND | FI_READ | FI_WRITE | FI_FENCE |
		       FI_NAMED_RX_CTX;
const uint64_t OF_RX =
	FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |
	FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV | FI_MULTI_RECV |
	FI_TAGGED_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT;

/* Capabilities of an endpoint as a whole, for those who name them in the hints. */
const uint64_t OF_WHOLE = FI_COLLECTIVE | FI_PEER;

/* Orders that cost something, for those who name them. */
const uint64_t ORDERS = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS |
			FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_WAS |
			FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_RMA_RAR |
			FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW;

const Bits bits[] = {
	/* Capabilities of the other direction are accepted and ignored. */
	BITS(tx_attr->caps, true, 0, OF_RX | OF_NONE | OF_WHOLE),
	BITS(tx_attr->op_flags, false, FI_COMPLETION | FI_INJECT | LEVELS, 0),
	BITS(tx_attr->msg_order, true, ORDERS, 0),
	BITS(tx_attr->comp_order, true, 0, 0),
	/* Newer ones are there for those who name them. */
	BITS(rx_attr->caps, true,
	     FI_EXACT_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV |
		     FI_TAGGED_MULTI_RECV,
	     OF_TX | OF_NONE | OF_WHOLE),
	BITS(rx_attr->op_flags, false, FI_COMPLETION | FI_MULTI_RECV, 0),
	BITS(rx_attr->msg_order, true, ORDERS, 0),
	BITS(rx_attr->comp_order, true, 0, 0),
	BITS(domain_attr->caps, true, 0, 0),
};

TEST_F(Attribute, BitsThatAreOfferedAndOthers)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 6: A bit is supported or the request
	 * fails. */
	ONLY_TANDEM();
	for (const Bits &b : bits) {
		uint64_t ours = (b.whole ? *b.at(offer) : 0) | b.more |
				b.ignored;

		SCOPED_TRACE(b.name);
		for (int i = 0; i < 64; i++) {
			uint64_t bit = 1ull << i;

			renew();
			*b.at(hints) = bit;
			EXPECT_EQ(ours & bit ? 0 : -FI_ENODATA, get()) << i;
			if (ours & bit && got && !(b.ignored & bit)) {
				EXPECT_EQ(bit, *b.at(got) & bit) << i;
			}
		}
		renew();
		*b.at(hints) = ours;
		EXPECT_EQ(0, get()) << "all of them";
	}
}

TEST_F(Attribute, CapabilitiesBitByBit)
{
	const uint64_t kinds = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	uint64_t ours;

	ONLY_TANDEM();
	/* Those that forbid or cost something are granted on request only. */
	EXPECT_EQ(0u, offer->caps & (FI_EXACT_DIRECTED_RECV | OF_WHOLE));
	ours = offer->caps | FI_EXACT_DIRECTED_RECV | OF_WHOLE;
	for (int i = 0; i < 64; i++) {
		uint64_t bit = 1ull << i;

		renew();
		hints->caps = bit | (bit & kinds ? 0 : FI_MSG);
		EXPECT_EQ(ours & bit ? 0 : -FI_ENODATA, get()) << i;
		if (ours & bit && got) {
			EXPECT_EQ(bit, got->caps & bit) << i;
		}
	}
}

TEST_F(Attribute, LevelsAreEchoed)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 6: The levels of fi_domain(3) that are
	 * asked for are granted: threading, progress, resource management, AV
	 * type. */
	ONLY_TANDEM();
	for (enum fi_threading t :
	     { FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
	       FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT }) {
		renew();
		hints->domain_attr->threading = t;
		ASSERT_EQ(0, get()) << t;
		EXPECT_EQ(t, got->domain_attr->threading);
	}
	for (enum fi_resource_mgmt r : { FI_RM_ENABLED, FI_RM_DISABLED }) {
		renew();
		hints->domain_attr->resource_mgmt = r;
		ASSERT_EQ(0, get()) << r;
		EXPECT_EQ(r, got->domain_attr->resource_mgmt);
	}
	for (enum fi_av_type v : { FI_AV_MAP, FI_AV_TABLE }) {
		renew();
		hints->domain_attr->av_type = v;
		ASSERT_EQ(0, get()) << v;
		EXPECT_EQ(v, got->domain_attr->av_type);
	}
	for (enum fi_progress p :
	     { FI_PROGRESS_MANUAL, FI_PROGRESS_CONTROL_UNIFIED }) {
		renew();
		hints->domain_attr->control_progress = p;
		ASSERT_EQ(0, get()) << p;
		EXPECT_EQ(p, got->domain_attr->control_progress);
	}
	{
		const size_t shared = FI_SHARED_CONTEXT;

		renew();
		hints->ep_attr->tx_ctx_cnt = shared;
		hints->ep_attr->rx_ctx_cnt = shared;
		ASSERT_EQ(0, get());
		EXPECT_EQ(shared, got->ep_attr->tx_ctx_cnt);
		EXPECT_EQ(shared, got->ep_attr->rx_ctx_cnt);
	}
}

TEST_F(Attribute, ValuesThatAreNoLevels)
{
	ONLY_TANDEM();
	hints->domain_attr->threading = static_cast<enum fi_threading>(99);
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->domain_attr->resource_mgmt =
		static_cast<enum fi_resource_mgmt>(99);
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->domain_attr->av_type = static_cast<enum fi_av_type>(99);
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->domain_attr->control_progress =
		static_cast<enum fi_progress>(99);
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->domain_attr->data_progress = static_cast<enum fi_progress>(99);
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->ep_attr->protocol = offer->ep_attr->protocol;
	hints->ep_attr->protocol_version = offer->ep_attr->protocol_version;
	EXPECT_EQ(0, get());
	hints->ep_attr->protocol_version++;
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	hints->domain_attr->max_group_id = UINT32_MAX;
	EXPECT_EQ(-FI_ENODATA, get());
}

TEST_F(Attribute, ModesAndClassesAskForNothing)
{
	/* Modes that the application supports are not required of it. */
	ONLY_TANDEM();
	hints->mode = ~0ull;
	hints->tx_attr->mode = ~0ull;
	hints->rx_attr->mode = ~0ull;
	hints->domain_attr->mode = ~0ull;
	ASSERT_EQ(0, get());
	EXPECT_EQ(0u, got->mode);
	EXPECT_EQ(0u, got->tx_attr->mode);
	EXPECT_EQ(0u, got->rx_attr->mode);
	EXPECT_EQ(0u, got->domain_attr->mode);
	renew();
	hints->domain_attr->tclass = FI_TC_BULK_DATA;
	hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
	ASSERT_EQ(0, get());
	EXPECT_EQ(uint32_t(FI_TC_BULK_DATA), got->domain_attr->tclass);
	EXPECT_EQ(uint32_t(FI_TC_LOW_LATENCY), got->tx_attr->tclass);
	renew();
	hints->ep_attr->mem_tag_format = 0x00ff00ff;
	ASSERT_EQ(0, get());
	EXPECT_EQ(0x00ff00ffu, got->ep_attr->mem_tag_format);
}

} // namespace
