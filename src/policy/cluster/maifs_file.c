#include "policy/cluster/maifs_file.h"

#include <string.h>

#include "policy/shipped.h"

char *maifs_file_facts(Arena *a) {
    MaifsNet n = maifs_net_usual();
    return arena_printf(a,
                        "policy=maifs\nserver=%d\njob=%d\noffer=%d\nqueue=%d\nwidth=%u\nheads=%u\n"
                        "rounds=%u\nhidden=%u\nrank=%u\n",
                        MAIFS_SERVER, MAIFS_JOB, MAIFS_OFFER, MAIFS_QUEUE, n.width, n.heads,
                        n.rounds, n.hidden, n.rank);
}

Err maifs_file_load(const char *what, Arena *a, MaifsLoaded *out) {
    MaifsNet n = maifs_net_usual();
    Weights  w;
    *out = (MaifsLoaded){.w = NULL};
    if (strcmp(what, "none") == 0) return ERR_OK;
    TRY(shipped_load(what, "maifs", "cluster", maifs_file_facts(a), a, &w));
    if (w.block.n != maifs_net_params(&n))
        return err_set(ERR_INVALID,
                       "weights of maifs %s: %zu numbers, its network has %zu; train others with "
                       "'cotenant cluster train'",
                       what, w.block.n, maifs_net_params(&n));
    out->w = w.block.at;
    return ERR_OK;
}
