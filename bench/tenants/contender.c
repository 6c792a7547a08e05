#include "bench/tenants/contender.h"

#include <string.h>

// A contender of cotenant has the name of its policy.
const Contender contenders[] = {
#define X(name, kind, option) {name, option, kind##_open, kind##_alone, kind##_serve},
#include "bench/tenants/contender.def"
#undef X
    {NULL, 0, NULL, NULL, NULL},
};

const Contender *contender_find(const char *name) {
    for (const Contender *c = contenders; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}
