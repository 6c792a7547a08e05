// Feeds the files of one application, separated by form feeds, to the reader of Pollux' tables.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/pollux_tables.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    static const char *const names[] = {"a/validation-8.csv", "a/validation-32.csv",
                                        "a/placements.csv", "a/scalability.csv"};
    static PolluxApp         x;
    char                    *text = malloc(size + 1);
    size_t                   at = 0, n = 0;
    if (text == NULL) abort();
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    x = (PolluxApp){.name = "a"};
    for (; n < sizeof names / sizeof *names && at <= size; n++) {
        const char *end = memchr(text + at, '\f', size - at);
        size_t      len = end != NULL ? (size_t)(end - text) - at : size - at;
        if (pollux_app_parse(&x, names[n], text + at, len) != ERR_OK) break;
        at += len + 1;
    }
    for (uint32_t g = 1, servers; g <= POLLUX_GPUS; g++) {
        double goodput = pollux_app_goodput(&x, g, &servers);
        if (!isfinite(goodput) || goodput < 0 || servers < 1 || servers > POLLUX_SERVERS) abort();
    }
    free(text);
    return 0;
}
