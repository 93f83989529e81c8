/* SPDX-License-Identifier: BSD-2-Clause */
/* The names in a folder, such as those of /proc/self. */
#ifndef TDT_ENTRIES_H
#define TDT_ENTRIES_H

#include <dirent.h>

#include <set>
#include <string>

/* Returns the names in the folder @path; none if it cannot be opened. */
inline std::set<std::string> tdt_entries(const char *path)
{
	std::set<std::string> names;
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		names.insert(e->d_name);
	if (d)
		closedir(d);
	return names;
}

#endif /* TDT_ENTRIES_H */
