#include "kernels/backend.h"

#include <ctype.h>
#include <string.h>

#include "common/str.h"

#define UUID_DIGITS 32
#define PREFIX_DIGITS 8 /* fewer say too little; a shorter number is an index */

/* The digits of a UUID in lower case, dashes and a leading "GPU-" left out.  False when
 * there is anything else in it. */
static bool
uuid_digits(const char *text, char out[UUID_DIGITS + 1])
{
	size_t n = 0;

	if (tolower((unsigned char)text[0]) == 'g' &&
	    tolower((unsigned char)text[1]) == 'p' &&
	    tolower((unsigned char)text[2]) == 'u' && text[3] == '-')
		text += 4;
	for (; *text != '\0'; text++) {
		if (*text == '-')
			continue;
		if (n == UUID_DIGITS || !isxdigit((unsigned char)*text))
			return false;
		out[n++] = (char)tolower((unsigned char)*text);
	}
	out[n] = '\0';
	return true;
}

static bool
is_allowed(const struct backend_device *d, bool software_ok)
{
	/* Who lists emulated devices is about nothing else. */
	return software_ok || d->emulated || !d->software;
}

static int
refuse_software(const struct kernel_backend *b, const struct backend_device *d,
	struct err *e)
{
	err_set(e, ERR_NO_DEVICE, "%s: device %u, %s, is software and no GPU", b->name,
		d->index, d->name);
	return err_hint(e, "--software allows it, for tests of the kernels alone");
}

static int
choose_first(const struct kernel_backend *b, const struct backend_device *list,
	size_t count, bool software_ok, size_t *index, struct err *e)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (list[i].note[0] == '\0' && is_allowed(&list[i], software_ok)) {
			*index = i;
			return 0;
		}
	for (i = 0; i < count; i++)
		if (list[i].note[0] == '\0')
			return refuse_software(b, &list[i], e);
	if (count > 0) {
		err_set(e, ERR_NO_DEVICE, "%s: device %u, %s, can not be used: %s",
			b->name, list[0].index, list[0].name, list[0].note);
		return err_hint(e, "%s", b->no_device);
	}
	err_set(e, ERR_NO_DEVICE, "%s: there is no device here", b->name);
	return err_hint(e, "%s", b->no_device);
}

static int
choose_index(const struct backend_device *list, size_t count, const char *wanted,
	size_t *index, struct err *e)
{
	uint32_t n = 0;
	size_t i;

	if (str_u32(wanted, 0, UINT32_MAX, &n, e) == 0)
		for (i = 0; i < count; i++)
			if (list[i].index == n) {
				*index = i;
				return 0;
			}
	err_set(e, ERR_USAGE, "no device %s: there %s %zu, and the first is %u", wanted,
		count == 1 ? "is" : "are", count, list[0].index);
	return err_hint(e, "--list shows them");
}

static int
choose_uuid(const struct backend_device *list, size_t count, const char *wanted,
	size_t *index, struct err *e)
{
	char digits[UUID_DIGITS + 1], have[UUID_DIGITS + 1];
	const struct backend_device *first = NULL, *d;
	size_t i, n;

	if (!uuid_digits(wanted, digits) || (n = strlen(digits)) < PREFIX_DIGITS) {
		err_set(e, ERR_USAGE,
			"\"%.64s\" is neither an index nor %d or more digits of a UUID",
			wanted, PREFIX_DIGITS);
		return err_hint(e, "--list shows the devices");
	}
	for (i = 0; i < count; i++) {
		d = &list[i];
		if (!uuid_digits(d->uuid, have) || strncmp(have, digits, n) != 0)
			continue;
		if (first != NULL) {
			err_set(e, ERR_USAGE,
				"%s of device %u (%s, %s) and of device %u (%s, %s)",
				str_eq(first->uuid, d->uuid) ? "one UUID is that"
							     : "it begins the UUIDs",
				first->index, first->name, first->driver, d->index,
				d->name, d->driver);
			return err_hint(e, "choose by index: --device %u or --device %u",
				first->index, d->index);
		}
		first = d;
		*index = i;
	}
	if (first != NULL)
		return 0;
	err_set(e, ERR_USAGE, "no device has a UUID that begins %.64s", wanted);
	return err_hint(e, "--list shows the devices");
}

static bool
is_index(const char *wanted)
{
	size_t n = strspn(wanted, "0123456789");

	return n > 0 && n < PREFIX_DIGITS && wanted[n] == '\0';
}

int
backend_choose(const struct kernel_backend *b, const struct backend_device *list,
	size_t count, const char *wanted, bool software_ok, size_t *index,
	struct err *e)
{
	const struct backend_device *d;

	if (wanted == NULL || count == 0)
		return choose_first(b, list, count, software_ok, index, e);
	if (is_index(wanted) ? choose_index(list, count, wanted, index, e)
			     : choose_uuid(list, count, wanted, index, e))
		return err_wrap(e, "%s", b->name);
	d = &list[*index];
	if (!is_allowed(d, software_ok))
		return refuse_software(b, d, e);
	if (d->note[0] != '\0') {
		err_set(e, ERR_NO_DEVICE, "%s: device %u, %s, can not be used: %s",
			b->name, d->index, d->name, d->note);
		return err_hint(e, "--list shows the others");
	}
	return 0;
}
