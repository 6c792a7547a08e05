// Text: strings that are not terminated, cut into words and changed between upper and lower case.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/tensor.h"

Str  text_of(const char *terminated);
bool text_equal(Str a, Str b);

// Writes s.len bytes. Letters beyond ASCII whose two cases are two bytes of UTF-8 each change too:
// western and eastern European Latin, Greek, Cyrillic. Others stay as they are.
void text_upper(Str s, char *out);
void text_lower(Str s, char *out);

// Cuts s at each separator, at most `cuts` times (negative: no limit), and returns how many parts
// there are. An empty separator means runs of white space, and none at the ends. out may be NULL.
int64_t text_split(Str s, Str separator, int64_t cuts, Str *out);

// Spell: the known word a person most likely meant.

uint32_t    text_distance(const char *a, const char *b);  // letters changed, added, lost or swapped
const char *text_nearest(const char *word, const char *const *known, size_t n);  // NULL: none near
