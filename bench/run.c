/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runner: starts two processes for each entrant, gives all of them the same
 * orders in turn, and says how they compare.
 *
 *   tandem_bench [-q] [-r ROUNDS] [-e ENTRANT,...] [-o DIR] [PART]
 *
 * PART: only rows with this text in their label. ./bench/README.md says how to
 * read the result.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/plan.h"
#include "bench/stat.h"
#include "bench/subject.h"
#include "bench/table.h"

enum {
	ORDER_SECONDS = 20, /* then an entrant has failed */
	/* the same for a start: all start at once and share few processors */
	START_SECONDS = 180,
	ROW_SECONDS = 6, /* then it gets no more rounds in a row */
	ROW_PAIRS = 16,	 /* unless it has fewer pairs of batches */
	LIVES = 3,	 /* how often an entrant is started */
};

struct options {
	int quick;
	int rounds;
	const char *entrants, *part, *dir;
};

/* Two processes and their page; the first pair does most rows alone. */
struct pair {
	struct bench_ctl *ctl; /* NULL: not started */
	int fd;		       /* of the page @ctl */
	pid_t pid[BENCH_SIDES];
};

struct entrant {
	const struct bench_entrant *of;
	struct pair pairs[BENCH_PAIRS_MOST];
	/* of the row that is measured */
	struct bench_sample sample;
	char why[BENCH_WHY_BYTES]; /* the sample is empty */
	uint64_t spent;		   /* ns */
	const char *failed_in;	   /* group of rows */
	int dead, lives;
};

/* how often the runner looks whether the processes that work still exist */
static const uint64_t look_ns = 500 * 1000 * 1000;

static struct entrant entrants[BENCH_SUBJECTS_MOST];
static size_t nentrants;

/* A side of @provider: never returns. */
static void be_side(char **argv)
{
	struct bench_subject s = { .side = argv[2][0] - '0' };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_side_init(&s, argv[3], argv[4]);
	bench_fab_open(&s, argv[5]);
	bench_side(&s);
	exit(0);
}

static void set_environment(const struct bench_entrant *of)
{
	int i;

	for (i = 0; i < BENCH_ENV_MOST && of->env[i]; i++)
		putenv(strdup(of->env[i]));
}

/* @path and @first: the pages of its pair, and of the first pair. */
static pid_t start_side(const struct bench_entrant *of, const char *path,
			const char *first, int side)
{
	char number[2] = { (char)('0' + side), 0 };
	pid_t pid = fork();

	if (pid)
		return pid;
	set_environment(of);
	execl("/proc/self/exe", "tandem_bench", "--side", number, path, first,
	      of->provider, (char *)NULL);
	_exit(127);
}

/* Both sides of an MPI library. */
static pid_t start_mpi(const struct bench_entrant *of, const char *path,
		       const char *first)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	set_environment(of);
	execlp("mpirun", "mpirun", "-n", "2", "--oversubscribe", "--bind-to",
	       "none", getenv("BENCH_MPI"), path, first, (char *)NULL);
	_exit(127);
}

static void page_path(char *path, size_t room, const struct pair *p)
{
	snprintf(path, room, "/proc/%d/fd/%d", (int)getpid(), p->fd);
}

static void start_pair(struct entrant *e, struct pair *p)
{
	const struct bench_entrant *of = e->of;
	char path[64], first[64];
	int side;

	memset(p, 0, sizeof(*p));
	p->ctl = bench_ctl_make(&p->fd);
	page_path(path, sizeof(path), p);
	page_path(first, sizeof(first), &e->pairs[0]);
	if (!of->provider)
		p->pid[0] = start_mpi(of, path, first);
	for (side = 0; of->provider && side < BENCH_SIDES; side++)
		p->pid[side] = start_side(of, path, first, side);
}

/* End the processes of @p; its page goes when it is started again. */
static void stop_pair(const struct entrant *e, const struct pair *p)
{
	int side;

	for (side = 0; side < BENCH_SIDES; side++) {
		if (p->pid[side] > 0)
			kill(p->pid[side], e->of->provider ? SIGKILL : SIGTERM);
	}
}

static void drop_pair(struct pair *p)
{
	if (p->ctl)
		bench_ctl_drop(p->ctl, p->fd);
	p->ctl = NULL;
}

static void start(struct entrant *e, const struct bench_entrant *of)
{
	int i;

	for (i = 0; i < BENCH_PAIRS_MOST; i++)
		drop_pair(&e->pairs[i]);
	e->of = of;
	e->dead = 0;
	e->lives++;
	start_pair(e, &e->pairs[0]);
}

static void stop(struct entrant *e)
{
	int i;

	for (i = 0; i < BENCH_PAIRS_MOST; i++) {
		if (e->pairs[i].ctl)
			stop_pair(e, &e->pairs[i]);
	}
}

/* As many pairs as a row needs: further ones do not outlive their rows. */
static void set_pairs(struct entrant *e, uint32_t pairs)
{
	uint32_t i;

	for (i = 1; i < BENCH_PAIRS_MOST; i++) {
		if (i < pairs && !e->pairs[i].ctl) {
			start_pair(e, &e->pairs[i]);
		} else if (i >= pairs && e->pairs[i].ctl) {
			stop_pair(e, &e->pairs[i]);
			drop_pair(&e->pairs[i]);
		}
	}
}

static int wanted(const struct options *o, const struct bench_entrant *of)
{
	const char *at = o->entrants;
	size_t len = strlen(of->name);

	if (!of->provider && !getenv("BENCH_MPI"))
		return 0;
	if (!at)
		return !of->whole || !o->quick;
	for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (!strncmp(at, of->name, len) && (at[len] == ',' || !at[len]))
			return 1;
	}
	return 0;
}

static void start_all(const struct options *o)
{
	size_t i;

	for (i = 0; i < bench_entrants_count; i++) {
		if (wanted(o, &bench_entrants[i]))
			start(&entrants[nentrants++], &bench_entrants[i]);
	}
}

/*
 * Returns the signal that has ended a process of @p, e.g. when the machine ran
 * out of memory, -1 if one has exited, or 0. The process stays to be waited for.
 */
static int ended_by(const struct pair *p)
{
	siginfo_t info;
	int side;

	for (side = 0; side < BENCH_SIDES; side++) {
		info.si_pid = 0;
		if (p->pid[side] > 0 &&
		    !waitid(P_PID, (id_t)p->pid[side], &info,
			    WEXITED | WNOHANG | WNOWAIT) &&
		    info.si_pid)
			return info.si_code == CLD_EXITED ? -1 : info.si_status;
	}
	return 0;
}

/* As bench_ctl_wait(), or ECHILD if a process of @p has ended. */
static int wait_pair(const struct pair *p, uint64_t until)
{
	uint64_t now;
	int err;

	do {
		now = bench_now();
		err = bench_ctl_wait(
			p->ctl, now + look_ns < until ? now + look_ns : until);
		if (err == ETIMEDOUT && ended_by(p)) {
			/* It may have said why. */
			err = bench_ctl_wait(p->ctl, now);
			return err == ETIMEDOUT ? ECHILD : err;
		}
	} while (err == ETIMEDOUT && bench_now() < until);
	return err;
}

/* @e has not carried out an order of @group within @seconds, or ended. */
static void fail(struct entrant *e, const char *group, int seconds, int err,
		 const struct pair *p)
{
	if (err == ECHILD && ended_by(p) < 0)
		snprintf(e->why, sizeof(e->why), "a process has exited");
	else if (err == ECHILD)
		snprintf(e->why, sizeof(e->why), "ended by signal %d",
			 ended_by(p));
	else if (err == ETIMEDOUT)
		snprintf(e->why, sizeof(e->why), "no end within %d s", seconds);
	else
		snprintf(e->why, sizeof(e->why), "%s", p->ctl->why);
	fprintf(stderr, "%s: %s\n", e->of->name, e->why);
	e->sample.count = 0;
	e->dead = 1;
	e->failed_in = group;
	stop(e);
}

static void take_sample(struct entrant *e)
{
	const struct bench_ctl *c = e->pairs[0].ctl;
	int i;

	for (i = 0; i < BENCH_BATCHES; i++) {
		if (c->subject_ns[i] > 0)
			bench_sample_add(&e->sample, c->line_ns[i],
					 c->limit_ns[i], c->subject_ns[i]);
	}
	if (!e->sample.count)
		snprintf(e->why, sizeof(e->why), "%s", "not offered");
}

static void run_order(struct entrant *e, const struct bench_row *row)
{
	uint32_t i, pairs = row->order.pairs ? row->order.pairs : 1;
	uint64_t begun = bench_now();
	int err;

	/* The first pair's page counts those who have come: it is first. */
	for (i = 0; i < pairs; i++)
		bench_ctl_give(e->pairs[i].ctl, &row->order);
	for (i = 0; i < pairs; i++) {
		err = wait_pair(&e->pairs[i],
				begun + ORDER_SECONDS * 1000000000ull);
		if (err) {
			fail(e, row->group, ORDER_SECONDS, err, &e->pairs[i]);
			return;
		}
	}
	e->spent += bench_now() - begun;
	take_sample(e);
}

/*
 * Wait until all processes of @e have started: they carry out an order then that is next
 * to nothing.
 */
static void await_start(struct entrant *e)
{
	static const struct bench_order first = { .kind = BENCH_EMPTY,
						  .limit = BENCH_LIMIT_CALL,
						  .window = 1,
						  .count = 1,
						  .lcount = 1,
						  .batches = 1 };
	uint64_t until = bench_now() + START_SECONDS * 1000000000ull;
	int i, err;

	for (i = 0; i < BENCH_PAIRS_MOST; i++) {
		if (e->pairs[i].ctl)
			bench_ctl_give(e->pairs[i].ctl, &first);
	}
	for (i = 0; i < BENCH_PAIRS_MOST; i++) {
		err = e->pairs[i].ctl ? wait_pair(&e->pairs[i], until) : 0;
		if (err) {
			e->lives = LIVES; /* it would fail again */
			fail(e, "start", START_SECONDS, err, &e->pairs[i]);
			return;
		}
	}
}

static int takes_part(const struct entrant *e, const struct bench_row *row)
{
	return (e->of->tiers & row->tier) != 0;
}

/* A new row: an entrant that failed in another group is started again. */
static void begin_row(struct entrant *e, const struct bench_row *row)
{
	e->sample.count = 0;
	e->spent = 0;
	if (e->dead && e->lives < LIVES && strcmp(e->failed_in, row->group)) {
		e->why[0] = 0;
		start(e, e->of);
		await_start(e);
	}
	if (!e->dead)
		set_pairs(e, row->order.pairs);
}

static int goes_on(const struct entrant *e)
{
	return !e->dead && (e->spent < ROW_SECONDS * 1000000000ull ||
			    e->sample.count < ROW_PAIRS);
}

static void measure(const struct options *o, const struct bench_row *row)
{
	struct bench_cell cells[BENCH_SUBJECTS_MOST];
	size_t i, n = 0;
	int round;

	for (i = 0; i < nentrants; i++) {
		if (takes_part(&entrants[i], row))
			begin_row(&entrants[i], row);
	}
	for (i = 0; row->order.pairs > 1 && i < nentrants; i++) {
		if (takes_part(&entrants[i], row) && !entrants[i].dead)
			await_start(&entrants[i]);
	}
	for (round = 0; round < o->rounds; round++) {
		for (i = 0; i < nentrants; i++) {
			if (takes_part(&entrants[i], row) &&
			    goes_on(&entrants[i]))
				run_order(&entrants[i], row);
		}
	}
	for (i = 0; i < nentrants; i++) {
		if (takes_part(&entrants[i], row))
			cells[n++] = (struct bench_cell){
				.of = entrants[i].of,
				.sample = &entrants[i].sample,
				.why = entrants[i].why,
			};
	}
	if (n)
		bench_table_row(row, cells, n);
}

/* On a terminal: how far the run is. */
static void say_progress(size_t done, size_t of, uint64_t begun)
{
	uint64_t gone = (bench_now() - begun) / 1000000000u;

	if (isatty(2) && done)
		fprintf(stderr, "\r%zu of %zu, about %llu s left  \r", done, of,
			(unsigned long long)(gone * (of - done) / done));
}

static void stop_all(void)
{
	struct bench_order quit = { .kind = BENCH_QUIT };
	size_t i;

	for (i = 0; i < nentrants; i++) {
		set_pairs(&entrants[i], 1);
		if (!entrants[i].dead) {
			bench_ctl_give(entrants[i].pairs[0].ctl, &quit);
			(void)bench_ctl_wait(entrants[i].pairs[0].ctl,
					     bench_now() + 5000000000ull);
		}
		stop(&entrants[i]);
	}
	while (wait(NULL) > 0)
		;
}

static void usage(void)
{
	fprintf(stderr, "usage: tandem_bench [-q] [-r ROUNDS] [-e ENTRANT,...]"
			" [-o DIR] [PART]\n");
	exit(2);
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){ .rounds = 4 };
	while ((c = getopt(argc, argv, "qr:e:o:")) != -1) {
		if (c == 'q')
			o->quick = 1;
		else if (c == 'r')
			o->rounds = atoi(optarg);
		else if (c == 'e')
			o->entrants = optarg;
		else if (c == 'o')
			o->dir = optarg;
		else
			usage();
	}
	if (optind < argc - 1 || o->rounds < 1)
		usage();
	o->part = argv[optind];
}

int main(int argc, char **argv)
{
	struct options o;
	struct bench_row *rows;
	uint64_t begun;
	size_t i, n;

	if (argc == 6 && !strcmp(argv[1], "--side"))
		be_side(argv);
	parse(argc, argv, &o);
	n = bench_plan(&rows, o.part, o.quick);
	bench_table_open(o.dir);
	start_all(&o);
	for (i = 0; i < nentrants; i++)
		await_start(&entrants[i]);
	begun = bench_now();
	for (i = 0; i < n; i++) {
		say_progress(i, n, begun);
		measure(&o, &rows[i]);
	}
	stop_all();
	bench_table_close();
	free(rows);
	return 0;
}
