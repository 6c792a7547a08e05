#include "kernel/relay.h"

#include "base/check.h"

static size_t relay_blocks(const Relay *r, uint32_t lanes) {
    return (size_t)r->n * ((r->channels + lanes - 1) / lanes);
}

uint32_t relay_tasks(const Relay *r, uint32_t lanes) {
    size_t tasks = relay_blocks(r, lanes) * ((r->pixels + RELAY_PIXELS - 1) / RELAY_PIXELS);
    CHECK(tasks <= UINT32_MAX);
    return (uint32_t)tasks;
}

size_t relay_count(const Relay *r, uint32_t lanes) {
    return relay_blocks(r, lanes) * r->pixels * lanes;
}
