// Text: string slices (Str): comparison, case, splitting, and the nearest known word.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/tensor.h"

Str  text_of(const char *terminated);
bool text_equal(Str a, Str b);

// Writes s.len bytes. Beyond ASCII only letters with two bytes of UTF-8 in both cases change:
// European Latin, Greek, Cyrillic.
void text_upper(Str s, char *out);
void text_lower(Str s, char *out);

// Splits s at each separator, at most `cuts` times (negative: no limit); returns the number of
// parts. An empty separator: runs of white space, trimmed at the ends. out may be NULL.
int64_t text_split(Str s, Str separator, int64_t cuts, Str *out);

// For "did you mean": the edit distance, transpositions included, and the nearest known word.
uint32_t    text_distance(const char *a, const char *b);
const char *text_nearest(const char *word, const char *const *known,
                         size_t n);  // NULL: none is near
enum { TEXT_MEANT = 128 };
// The end of an error message: "did you mean WORD?", or `otherwise` if no known word is near.
const char *text_meant(const char *word, const char *const *known, size_t n, const char *otherwise,
                       char out[TEXT_MEANT]);
