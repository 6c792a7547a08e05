// Decimal: numbers written in decimals into whole numbers of a unit, without detours over binary.
#pragma once

#include <stdint.h>
#include <stdio.h>

typedef enum DecimalError {
    DECIMAL_OK,
    DECIMAL_NOT_A_NUMBER,  // not a number
    DECIMAL_NEGATIVE,      // nor a zero with a minus
    DECIMAL_LARGE,         // above most
} DecimalError;

// text times unit, rounded, at most `most`: decimal_read("1.5", 1000, ...) gives 1500. Digits
// behind the first nine of a fraction count no more. unit > 0, most >= 0.
DecimalError decimal_read(const char *text, int64_t unit, int64_t most, int64_t *out);

// value / unit without zeros at the end; exact for units that are powers of 10 or of 2 up to 1024.
void decimal_put(FILE *f, int64_t value, int64_t unit);

const char *decimal_error_text(DecimalError f);  // "is not a number" and so on, for errors
