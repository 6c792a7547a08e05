// What administrators do: models listed, loaded and unloaded. Nothing is uploaded here.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "serve/card.h"
#include "serve/grpc_int.h"

enum { INDEX_BYTES = 16 << 20 };

typedef struct Wish {
    Str  model;
    bool ready, brings;  // brings: a configuration or files
} Wish;

// A model that is uploaded, or a configuration that is sent along, is refused, not ignored.
static Err read_parameter(const WireIn *in, const WireField *f, Wish *o) {
    TRY(wire_want(in, f, WIRE_BYTES));
    WireIn    inside = wire_inside(in, f);
    WireField v;
    bool      more = true;
    Str       key;
    while (more) {
        TRY(wire_next(&inside, &v, &more));
        if (!more || v.number != 1) continue;
        TRY(wire_text(in, &v, &key));
        if (text_equal(key, text_of("config")) || (key.len > 5 && memcmp(key.at, "file:", 5) == 0))
            o->brings = true;
    }
    return ERR_OK;
}

static Err read_wish(Str message, GrpcKind kind, Wish *o) {
    WireIn    in = wire_in(message.at, message.len);
    WireField f;
    bool      more = true;
    *o = (Wish){.model = {"", 0}};
    while (more) {
        TRY(wire_next(&in, &f, &more));
        if (!more) break;
        if (f.number == 2 && kind == GRPC_INDEX) {
            TRY(wire_want(&in, &f, WIRE_VARINT));
            o->ready = f.value != 0;
        } else if (f.number == 2) {
            TRY(wire_text(&in, &f, &o->model));
        } else if (f.number == 3 && kind != GRPC_INDEX) {
            TRY(read_parameter(&in, &f, o));
        }
    }
    return ERR_OK;
}

static void tell_index(GrpcCall *c, bool ready) {
    const Fleet *f = c->g->o.fleet;
    WireOut      o = wire_out(&c->g->scratch, INDEX_BYTES);
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *s = fleet_at(f, i);
        if (ready && s->state != FLEET_READY) continue;
        size_t row = wire_begin(&o, 1);
        wire_put_text(&o, 1, s->name);
        wire_put_text(&o, 2, s->version);
        wire_put_text(&o, 3, card_state(s->state));
        wire_put_text(&o, 4, s->reason);
        wire_end(&o, row);
    }
    grpc_answer(c, &o);
}

static void changed(void *self, const char *why) {
    GrpcCall *c = self;
    c->waiting = false;
    WireOut nothing = wire_out(&c->g->scratch, 0);
    if (c->x == NULL)
        grpc_free(c);
    else if (why != NULL)
        grpc_fail(c->x, GRPC_INVALID, 0, why);
    else
        grpc_answer(c, &nothing);
}

void grpc_admin(GrpcCall *c) {
    Wish o;
    if (read_wish(c->message, c->kind, &o) != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
    } else if (c->kind == GRPC_INDEX) {
        tell_index(c, o.ready);
    } else if (o.brings) {
        grpc_fail(c->x, GRPC_INVALID, 0,
                  "models and their settings come from the server's own files");
    } else if (!config_name_ok(o.model.at, o.model.len) || o.model.len >= sizeof c->name) {
        grpc_fail(c->x, GRPC_INVALID, 0,
                  "a name has 1 to 128 letters, digits, '.', '_' and '-', a letter or digit first");
    } else {
        memcpy(c->name, o.model.at, o.model.len);
        c->waiting = true;
        if (c->kind == GRPC_LOAD)
            fleet_load(c->g->o.fleet, c->name, changed, c);
        else
            fleet_unload(c->g->o.fleet, c->name, changed, c);
    }
}
