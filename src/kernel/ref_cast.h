// Cast: every element as another type; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// Numbers and bool into numbers and bool, by the rules of wide_store.
void ref_cast(const Tensor *x, Tensor *y);

enum { REF_CAST_TEXT = 40 };  // bytes that hold any number's text

// Element i as text: the shortest one that reads back as the same number. Returns its length.
size_t ref_cast_print(const Tensor *x, int64_t i, char text[REF_CAST_TEXT]);

// Reads element i of y from text: a decimal number, "NaN" or "INF" in any case. Fails on all else.
MUST_USE Err ref_cast_read(Str text, Tensor *y, int64_t i);
