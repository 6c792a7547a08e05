#include "net/exchange.h"

#include <string.h>

Str exchange_header(const Exchange *x, const char *name) {
    size_t len = strlen(name);
    for (uint32_t i = 0; i < x->n_headers; i++) {
        const ExchangeHeader *h = &x->headers[i];
        if (h->name.len == len && memcmp(h->name.at, name, len) == 0) return h->value;
    }
    return (Str){0};
}
