#include <curl/curl.h>
#include <sys/random.h>
#include <time.h>

#include "cloud/retry.h"

#define FIRST_MS 250
#define MOST_MS  20000

int64_t retry_backoff(unsigned n, uint32_t random)
{
        int64_t whole = FIRST_MS;
        for (; n > 1 && whole < MOST_MS; n--)
                whole *= 2;
        if (whole > MOST_MS)
                whole = MOST_MS;
        return whole / 2 + (int64_t)(random % (uint32_t)(whole / 2 + 1));
}

int64_t http_date(const char *text)
{
        time_t t = strlen(text) < 64 ? curl_getdate(text, NULL) : -1;
        return t > 0 ? (int64_t)t : -1;
}

int64_t iso_date(const char *text)
{
        struct tm tm = { 0 };
        const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        if (!end || tm.tm_year < 70 || tm.tm_year > 8000)
                return -1;
        if (*end == '.')
                end += 1 + strspn(end + 1, "0123456789");
        if (*end && !streq(end, "Z") && !streq(end, "+00:00") && !streq(end, "+0000"))
                return -1;
        return (int64_t)timegm(&tm);
}

static int64_t retry_capped(int64_t seconds)
{
        return seconds >= RETRY_AFTER_MAX / 1000 ? RETRY_AFTER_MAX : seconds * 1000;
}

int64_t retry_after(const char *text, int64_t wall)
{
        size_t digits = strspn(text, "0123456789");
        if (digits && !text[digits])
                return digits > 9 ? RETRY_AFTER_MAX : retry_capped(strtol(text, NULL, 10));
        int64_t then = digits ? -1 : http_date(text);
        if (then < 0)
                return -1;
        return then > wall ? retry_capped(then - wall) : 0;
}

bool retry_throttle_code(const char *code)
{
        static const char *const codes[] = { "RequestLimitExceeded", "Throttling",
                "ThrottlingException", "ThrottledException", "RequestThrottled",
                "RequestThrottledException", "TooManyRequestsException", "PriorRequestNotComplete",
                "BandwidthLimitExceeded", "SlowDown", "EC2ThrottledException",
                "TransactionInProgressException" };
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (streq(code, codes[i]))
                        return true;
        return false;
}

uint32_t retry_random(void)
{
        uint32_t r = 0;
        if (getrandom(&r, sizeof(r), 0) != sizeof(r))
                r = (uint32_t)time(NULL);
        return r;
}

bool renewal_due(int64_t life_ms, int64_t left_ms)
{
        int64_t most = 5 * 60 * 1000;
        return left_ms < (life_ms / 2 < most ? life_ms / 2 : most);
}
