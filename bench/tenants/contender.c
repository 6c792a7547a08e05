#include "bench/tenants/contender.h"

#include <string.h>

// A contender of cotenant has the name of its policy.
const Contender contenders[] = {
#define X(name, kind, option) {name, option, kind##_open, kind##_alone, kind##_serve},
#include "bench/tenants/contender.def"
#undef X
    {NULL, 0, NULL, NULL, NULL},
};

int64_t trial_length(const Trial *t, uint32_t request, int64_t longest) {
    Rng r = rng_fork((Rng){t->seed}, request);
    return 1 + (int64_t)rng_below(&r, (uint64_t)longest);
}

const Contender *contender_find(const char *name) {
    for (const Contender *c = contenders; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}
