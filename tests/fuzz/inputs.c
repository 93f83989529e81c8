/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target without libFuzzer: the main program, which gives it each of the
 * files that are named, to measure what they reach (.ci/fuzz.sh).
 */
#include <stdio.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	static uint8_t data[1 << 16];
	int i;

	for (i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		size_t n;

		if (!file) {
			perror(argv[i]);
			return 1;
		}
		n = fread(data, 1, sizeof(data), file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, n);
	}
	return 0;
}
