// Quantity: Kubernetes' notation for amounts ("100m", "1.5", "2Gi", "1e3") as whole numbers.
#pragma once

#include <stdint.h>

#include "base/err.h"

enum { QUANTITY_TEXT = 256 };  // characters, at most

// Rounded up, away from 0, as Kubernetes does; beyond the range it is INT64_MAX or -INT64_MAX.
MUST_USE Err quantity_units(const char *text, int64_t *out);
MUST_USE Err quantity_milli(const char *text, int64_t *out);  // in thousandths
