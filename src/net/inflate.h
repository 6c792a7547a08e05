// Inflate: decompresses gzip and deflate bodies, up to a limit in bytes.
#pragma once

#include "base/err.h"
#include "base/tensor.h"

typedef enum InflateKind { INFLATE_NONE, INFLATE_GZIP, INFLATE_DEFLATE } InflateKind;

// By the value of Content-Encoding; false: another one, or several.
bool inflate_kind(Str encoding, InflateKind *out);

// *out is from malloc, with body + aligned on a multiple of 64. ERR_LIMIT beyond most, ERR_PARSE
// when it is damaged or has trailing bytes.
MUST_USE Err inflate_all(InflateKind kind, Str in, size_t most, size_t aligned, void **memory,
                         unsigned char **out, size_t *len);

// The same step by step, so that a large body does not stall other connections. in is borrowed.
typedef struct Inflate Inflate;

MUST_USE Err inflate_begin(Inflate **out, InflateKind kind, Str in);
// Up to room bytes more. A step reads at most 64 KiB of input: it may make nothing before *done.
MUST_USE Err inflate_step(Inflate *i, unsigned char *to, size_t room, size_t *made, bool *done);
void         inflate_end(Inflate *i);  // accepts NULL
