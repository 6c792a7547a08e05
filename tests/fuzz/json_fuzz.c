// Feeds text to the strict JSON reader; what it accepts must come back equal when written.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    json_t *doc, *back;
    int64_t n;
    if (json_parse("fuzz", (const char *)data, size, &doc) != ERR_OK) return 0;
    if (json_get_int(doc, "n", 0, 10, &n) == ERR_OK && (n < 0 || n > 10)) abort();
    char *text = json_dumps(doc, JSON_COMPACT);
    if (text == NULL || json_parse("again", text, strlen(text), &back) != ERR_OK) abort();
    if (!json_equal(doc, back)) abort();
    free(text);
    json_decref(back);
    json_decref(doc);
    return 0;
}
