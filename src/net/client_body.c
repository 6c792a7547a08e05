#include <stdlib.h>
#include <string.h>

#include "net/client_reading.h"

void client_body_begin(ClientBody *b, size_t keep) {
    b->kept = b->len = 0;
    b->keep = keep;
}

static Err grow(ClientBody *b, size_t need) {
    size_t room = b->room * 2 > need ? b->room * 2 : need;
    if (room < 4096) room = 4096;
    unsigned char *at = realloc(b->at, room);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for an answer of %zu bytes", need);
    b->at = at;
    b->room = room;
    return ERR_OK;
}

Err client_body_add(ClientBody *b, const void *bytes, size_t len) {
    if (len > b->most - b->len)
        return err_set(ERR_LIMIT, "an answer of more than %zu bytes", b->most);
    size_t keep = b->keep - b->kept < len ? b->keep - b->kept : len;
    if (keep > b->room - b->kept) TRY(grow(b, b->kept + keep));
    if (keep > 0) memcpy(b->at + b->kept, bytes, keep);
    b->kept += keep;
    b->len += len;
    return ERR_OK;
}
