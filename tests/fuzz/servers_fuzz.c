// Feeds text to the readers of servers and of rates.
#include <stdint.h>
#include <stdlib.h>

#include "cluster/trace/iteration_times.h"
#include "cluster/server_list.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena          a;
    ServerList     l;
    IterationTimes r;
    uint64_t       gpus = 0;
    if (arena_init(&a, (size_t)1 << 27) != ERR_OK) abort();
    if (server_list_parse("fuzz", (const char *)data, size, &a, &l) == ERR_OK) {
        for (uint32_t i = 0; i < l.n; i++) gpus += l.at[i].gpus;
        if (l.n == 0 || gpus != l.gpus) abort();
    }
    if (iteration_times_parse("fuzz", (const char *)data, size, NULL, &a, &r) == ERR_OK) {
        for (uint32_t i = 0; i < r.n; i++)
            if (!(r.at[i].iteration_s > 0) || iteration_times_find(&r, r.at[i].model, 1) == NULL)
                abort();
    }
    arena_finish(&a);
    return 0;
}
