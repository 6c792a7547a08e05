// Feeds text to the reader of quantities; what it accepts is ordered: thousandths are at least
// units away from 0, and the sign is the text's.
#include <stdlib.h>
#include <string.h>

#include "kube/quantity.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    char    text[400] = "";
    int64_t units = 0, milli = 0;
    memcpy(text, data, size < sizeof text - 1 ? size : sizeof text - 1);
    Err a = quantity_units(text, &units), b = quantity_milli(text, &milli);
    if (a != b) abort();
    if (a != ERR_OK) return 0;
    if (units == INT64_MIN || milli == INT64_MIN) abort();
    if ((text[0] == '-' && units > 0) || (text[0] != '-' && units < 0)) abort();
    if (units < 0) {
        units = -units;
        milli = -milli;
    }
    if (milli < units && milli != INT64_MAX) abort();
    if ((units == 0) != (milli == 0)) abort();
    return 0;
}
