// Feeds bytes, a line at a time, to the parsers of watch lines and list pages: what they accept has
// what a watch goes on from.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_watch_event.h"
#include "tests/fuzz/fuzz.h"

static void feed(const char *text, size_t len) {
    KubeWatchEvent e;
    KubeWatchPage  p;
    if (kube_watch_event_parse(text, len, &e) == ERR_OK) {
        if (!json_is_object(e.object)) abort();
        if ((e.type == WATCH_ERROR) != (e.version == NULL)) abort();
        if (e.version != NULL && *e.version == '\0') abort();
        kube_watch_event_free(&e);
    }
    if (kube_watch_page_parse(text, len, &p) == ERR_OK) {
        if (p.version == NULL || (p.next != NULL && *p.next == '\0')) abort();
        for (size_t i = 0; i < json_array_size(p.items); i++)
            if (!json_is_object(json_array_get(p.items, i))) abort();
        kube_watch_page_free(&p);
    }
}

FUZZ_TARGET(data, size) {
    const char *text = (const char *)data;
    for (size_t at = 0; at <= size;) {
        const char *end = at < size ? memchr(text + at, '\n', size - at) : NULL;
        size_t      len = end != NULL ? (size_t)(end - text) - at : size - at;
        feed(text + at, len);
        at += len + 1;
    }
    return 0;
}
