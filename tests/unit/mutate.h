/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz targets without libFuzzer: good inputs, each cut at every length and
 * changed at random, always in the same way.
 */
#ifndef TDT_MUTATE_H
#define TDT_MUTATE_H

#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

/* Give @target, which aborts when a promise is broken, variants of @seeds. */
static inline void mutate(int (*target)(const uint8_t *data, size_t size),
			  const std::vector<std::string> &seeds)
{
	auto run = [target](const std::string &s) {
		target(reinterpret_cast<const uint8_t *>(s.data()), s.size());
	};
	std::mt19937 rnd(1);

	for (const std::string &seed : seeds) {
		for (size_t n = 0; n <= seed.size(); n++)
			run(seed.substr(0, n));
		for (int i = 0; i < 10000; i++) {
			std::string s = seed;

			for (unsigned k = rnd() % 4 + 1; k; k--) {
				size_t at = rnd() % s.size();

				if (rnd() % 8 == 0)
					s.insert(at,
						 s.substr(rnd() % s.size()));
				else if (rnd() % 2)
					s[at] = char(rnd());
				else
					s[at] = seed[rnd() % seed.size()];
			}
			run(s);
		}
	}
}

#endif /* TDT_MUTATE_H */
