/* libcurl on the event loop: its sockets and its timer. */
#ifndef SLIPWAY_CURL_LOOP_H
#define SLIPWAY_CURL_LOOP_H

#include <curl/curl.h>
#include <event2/event.h>

#include "base/str.h"

struct curl_loop {
        CURLM *curl;
        struct event_base *base;
        struct event *timer;
        /* calls curl_multi_socket_action with these two, and sees what has ended */
        void (*act)(curl_socket_t s, int what, void *arg);
        void *arg;
};

/* -ENOMEM, or 0. It must stay where it is until it is released. */
int curl_loop_init(struct curl_loop *l, struct event_base *base,
        void (*act)(curl_socket_t s, int what, void *arg), void *arg);
void curl_loop_release(struct curl_loop *l);
/* Adds why a transfer failed: that it was cut, or libcurl's own words (`why`: its error buffer). */
void curl_trouble(struct str *s, CURLcode code, const char *why);

#endif
