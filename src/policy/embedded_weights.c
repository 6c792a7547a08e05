#include "policy/embedded_weights.h"

#include <string.h>

static Err read_embedded(const char *policy, const char *tier, const char *expect, Arena *a,
                         WeightsFile *out) {
    for (const EmbeddedWeights *s = embedded_weights; s->name != NULL; s++)
        if (strcmp(s->name, policy) == 0)
            return weights_parse(s->name, s->bytes, s->len, expect, 0, a, out);
    return err_set(ERR_CONFIG,
                   "no embedded weights for %s; train some with 'cotenant %s train' and name them "
                   "with %s.weights",
                   policy, tier, policy);
}

Err embedded_weights_load(const char *path, const char *policy, const char *tier,
                          const char *expect, Arena *a, WeightsFile *out) {
    Err e = *path == '\0' ? read_embedded(policy, tier, expect, a, out)
                          : weights_load(path, expect, 0, a, out);
    if (e == ERR_OK) return ERR_OK;
    return err_add(e, "weights of %s (train others with 'cotenant %s train')", policy, tier);
}
