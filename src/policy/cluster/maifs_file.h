// MaifsFile: the network's weights, from a file or from those that are part of the program.
#pragma once

#include "policy/cluster/maifs.h"

// what: see policy/shipped.h; or "none" for the rules alone.
MUST_USE Err maifs_file_load(const char *what, Arena *a, MaifsLoaded *out);

char *maifs_file_facts(Arena *a);  // lines that a file has to have
