// Decimal: exact conversion between decimal text and integers in units of 1/unit.
#pragma once

#include <stdint.h>
#include <stdio.h>

typedef enum DecimalError {
    DECIMAL_OK,
    DECIMAL_NOT_A_NUMBER,  // not a number
    DECIMAL_NEGATIVE,      // -0 is accepted
    DECIMAL_LARGE,         // greater than `most`
} DecimalError;

// text times unit, rounded, at most `most`: decimal_read("1.5", 1000, ...) gives 1500. Only the
// first nine digits of a fraction count. unit > 0, most >= 0.
DecimalError decimal_read(const char *text, int64_t unit, int64_t most, int64_t *out);

// Writes value / unit without trailing zeros; exact for powers of 10, and of 2 up to 1024.
void decimal_put(FILE *f, int64_t value, int64_t unit);

const char *decimal_error_text(DecimalError f);  // "is not a number" etc., for error messages
