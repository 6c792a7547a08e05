// Feeds YAML to the reader of machines; what it accepts can be simulated.
#include <stdint.h>
#include <stdlib.h>

#include "node/machine.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena           a;
    NodeMachineSpec s;
    uint16_t        counts[NODE_COUNTS];
    if (arena_init(&a, (size_t)1 << 24) != ERR_OK) abort();
    if (machine_parse("fuzz.yaml", (const char *)data, size, &a, &s) == ERR_OK) {
        uint32_t    n = machine_counts(&s, counts);
        NodeMachine m = machine_view(&s, &a);
        if (n == 0 || n > NODE_COUNTS || counts[0] != 1 || counts[n - 1] != m.n_cores) abort();
        if (m.n_cores == 0 || m.n_slices == 0) abort();
    }
    arena_finish(&a);
    return 0;
}
