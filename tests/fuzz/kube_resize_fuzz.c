// A pod as a server may answer, made into a patch of its amounts.
#include <stdlib.h>

#include "base/json.h"
#include "kube/kube_resize.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    json_t *pod = NULL;
    char   *out = NULL;
    if (json_parse("pod", (const char *)data, size, &pod) != ERR_OK) return 0;
    if (kube_resize_patch(pod, 1500, 1 << 30, &out) == ERR_OK) free(out);
    json_decref(pod);
    return 0;
}
