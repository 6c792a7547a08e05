// KubeWatchEvent: one line of a watch, and KubeWatchPage: one page of a list, parsed.
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum KubeWatchType {
    WATCH_PUT,       // ADDED, MODIFIED
    WATCH_GONE,      // DELETED
    WATCH_BOOKMARK,  // only a version
    WATCH_ERROR,     // object is a Status
} KubeWatchType;

typedef struct KubeWatchEvent {
    KubeWatchType type;
    json_t       *object;   // owned
    const char   *version;  // the object's metadata.resourceVersion; NULL with WATCH_ERROR
    int64_t       code;     // of an error, as of HTTP; 0: not said
} KubeWatchEvent;

typedef struct KubeWatchPage {
    json_t     *list;            // owned
    json_t     *items;           // array
    const char *version, *next;  // of the list; next: continue token, NULL on the last page
} KubeWatchPage;

MUST_USE Err kube_watch_event_parse(const char *text, size_t len, KubeWatchEvent *out);
void         kube_watch_event_free(KubeWatchEvent *e);
MUST_USE Err kube_watch_page_parse(const char *text, size_t len, KubeWatchPage *out);
void         kube_watch_page_free(KubeWatchPage *p);
