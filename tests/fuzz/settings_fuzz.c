// Feeds YAML to the settings reader; accepted or not, every value stays within its range.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_SETTINGS(X)                                                                           \
    X(cores, int, 4, 1, 64, "how many")                                                            \
    X(bytes, int64, 10, -5, INT64_C(1) << 40, "how much")                                          \
    X(load, double, 0.7, 0.0, 2.0, "how busy")                                                     \
    X(warm, bool, true, 0, 1, "whether")                                                           \
    X(policy, string, "fcfs", 1, 8, "which")

typedef struct FuzzSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    FUZZ_SETTINGS(X)
#undef X
} FuzzSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(FuzzSettings, __VA_ARGS__)
    FUZZ_SETTINGS(X)
#undef X
};

FUZZ_TARGET(data, size) {
    Arena        a;
    FuzzSettings v = {0};
    Settings     s = {rows, sizeof rows / sizeof *rows, &v, &a};
    char         line[256] = "";
    if (arena_init(&a, 1 << 20) != ERR_OK) abort();
    settings_default(&s);
    (void)!settings_parse(&s, "fuzz.yaml", (const char *)data, size);
    memcpy(line, data, size < sizeof line - 1 ? size : sizeof line - 1);
    (void)!settings_set(&s, line);
    if (v.cores < 1 || v.cores > 64 || v.bytes < -5 || !(v.load >= 0 && v.load <= 2)) abort();
    if (strlen(v.policy) < 1 || strlen(v.policy) > 8) abort();
    arena_finish(&a);
    return 0;
}
