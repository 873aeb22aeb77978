// SPDX-License-Identifier: GPL-2.0-only
/*
 * The key of mode vmm's calls: 128 bits of the operator's file, or random ones.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <crypto/sha2.h>

#include "kyozon.h"

/* Fills @key from the operator's bytes. */
int kyozon_key_read(const struct kyozon_image *from, u64 key[KYOZON_KEY_WORDS])
{
	u64 digest[SHA256_DIGEST_SIZE / sizeof(u64)];
	u8 *bytes;

	if (from->bytes < KYOZON_KEY_BYTES_MIN ||
	    from->bytes > KYOZON_KEY_BYTES_MAX)
		return -EINVAL;
	bytes = memdup_user(u64_to_user_ptr(from->address), from->bytes);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	sha256(bytes, from->bytes, (u8 *)digest);
	memcpy(key, digest, KYOZON_KEY_WORDS * sizeof(u64));
	memzero_explicit(digest, sizeof(digest));
	kfree_sensitive(bytes);
	return 0;
}

/* The key of a load: the operator's if there is one. */
int kyozon_key_take(struct kyozon_load *load, u64 key[KYOZON_KEY_WORDS])
{
	int error;

	if (!load->key.bytes) {
		get_random_bytes(key, KYOZON_KEY_WORDS * sizeof(u64));
		return 0;
	}
	error = kyozon_key_read(&load->key, key);
	if (error)
		return kyozon_err(load, error,
				  "the key has %llu bytes: %u to %u are possible",
				  load->key.bytes, (u32)KYOZON_KEY_BYTES_MIN,
				  (u32)KYOZON_KEY_BYTES_MAX);
	return 0;
}
