// SPDX-License-Identifier: MIT OR Apache-2.0
/* libsodium WORK: encrypts and decrypts a text by ChaCha20 and Poly1305. */
#include "bytes.h"
#include "sodium/crypto_aead_chacha20poly1305.h"

#define SIZE	(1 << 20)
#define TIMES	20
#define TAG	crypto_aead_chacha20poly1305_ietf_ABYTES

/* What the library has elsewhere: this program makes no random keys and misuses nothing. */
void randombytes_buf(void *bytes, size_t size)
{
	abort();
}

void sodium_misuse(void)
{
	abort();
}

int main(int argc, char **argv)
{
	unsigned char *from = text(SIZE), *secret = malloc(SIZE + TAG), *again = malloc(SIZE);
	unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = { 0 };
	unsigned char key[crypto_aead_chacha20poly1305_ietf_KEYBYTES];
	unsigned long long length, size;

	for (size_t n = 0; n < sizeof(key); n++)
		key[n] = below(256);
	start(argc, argv);
	for (int i = 0; i < TIMES; i++) {
		nonce[0]++;
		must(!crypto_aead_chacha20poly1305_ietf_encrypt(secret, &length, from, SIZE, nonce, sizeof(nonce), NULL,
								nonce, key), "encryption");
		must(!crypto_aead_chacha20poly1305_ietf_decrypt(again, &size, NULL, secret, length, nonce,
								sizeof(nonce), nonce, key), "decryption");
	}
	return packed(from, again, SIZE, secret, length);
}
