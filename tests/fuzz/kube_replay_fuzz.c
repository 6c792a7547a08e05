// Feeds records of decisions to the replay, with a real policy: it reports what it cannot read.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_replay.h"
#include "policy/policies.h"
#include "tests/fuzz/fuzz.h"

static Err choose(void *self, KubeReplayRun *run, Arena *a) {
    static ClusterProfiles none;
    (void)self, (void)a;
    run->policy = policies_cluster_find("las");
    run->profiles = &none;
    if (run->policy == NULL || run->policy->settings_size > 0)
        run->policy = policies_cluster_find("fifo");
    return run->policy != NULL ? ERR_OK : err_set(ERR_ARG, "no policy");
}

FUZZ_TARGET(data, size) {
    Arena            a;
    KubeReplayCounts c;
    if (arena_init(&a, (size_t)1 << 24) != ERR_OK) abort();
    if (kube_replay_text("fuzz", (const char *)data, size, choose, NULL, &a, &c) == ERR_OK &&
        c.same > c.decisions)
        abort();
    arena_finish(&a);
    return 0;
}
