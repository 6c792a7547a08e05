// Feeds options to the reader of tenants' quotas and weights: the first line, and the rest.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/tenant_shares.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena        a;
    TenantShares s;
    char         text[512] = "";
    if (arena_init(&a, 1 << 20) != ERR_OK) abort();
    memcpy(text, data, size < sizeof text - 1 ? size : sizeof text - 1);
    char *second = strchr(text, '\n');
    if (second != NULL) *second++ = '\0';
    if (tenant_shares_read(text, second, &a, &s) == ERR_OK)
        for (uint32_t i = 0; i < s.n; i++) {
            const TenantShare *x = &s.at[i];
            if (x->name[0] == '\0' || x->weight < 0 || (x->limit > 0 && x->guaranteed > x->limit))
                abort();
        }
    arena_finish(&a);
    return 0;
}
