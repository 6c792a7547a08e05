// Inflate: gzip and deflate bodies, decompressed up to a limit and not a byte further.
#pragma once

#include "base/err.h"
#include "base/tensor.h"

typedef enum InflateKind { INFLATE_NONE, INFLATE_GZIP, INFLATE_DEFLATE } InflateKind;

// By the value of Content-Encoding; false: another one, or several.
bool inflate_kind(Str encoding, InflateKind *out);

// *out is from malloc, with body + aligned on a multiple of 64. ERR_LIMIT beyond most, ERR_PARSE
// when it is broken or something follows it.
MUST_USE Err inflate_all(InflateKind kind, Str in, size_t most, size_t aligned, void **memory,
                         unsigned char **out, size_t *len);
