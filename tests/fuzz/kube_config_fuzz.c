// Feeds text to the reader of kubeconfig files: what it accepts has a server and complete pairs.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_config.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(data, size) {
    Arena      a;
    KubeConfig c;
    if (arena_init(&a, (size_t)1 << 27) != ERR_OK) abort();
    if (kube_config_parse("fuzz", (const char *)data, size, NULL, &a, &c) == ERR_OK) {
        bool certificate = c.certificate_pem != NULL || c.certificate_file != NULL;
        if (strncmp(c.server, "http", 4) != 0 || c.server[strlen(c.server) - 1] == '/') abort();
        if (certificate != (c.key_pem != NULL || c.key_file != NULL)) abort();
        if (c.ca_pem != NULL && c.ca_file != NULL) abort();
    }
    arena_finish(&a);
    return 0;
}
