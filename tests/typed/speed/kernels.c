// SPDX-License-Identifier: MIT OR Apache-2.0
/* kernels NAME: one numeric kernel, in double precision but for the shortest paths, on data that it makes itself. */
#include "speed.h"

#define N	320
#define LONG	1600
#define CUBE	64

static double a[N][N], b[N][N], c[N][N], d[N][N];
static double wide[LONG][LONG], x[LONG], y[LONG], z[LONG], w[LONG];
static double cube[2][CUBE][CUBE][CUBE];
static int paths[N][N];

/* Numbers between 0 and 1 that follow a simple rule. */
static double value(int i, int j, int salt)
{
	return (double)((i * 31 + j * 17 + salt * 7) % 101 + 1) / 102;
}

static void fill(double (*matrix)[N], int salt)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			matrix[i][j] = value(i, j, salt);
}

static void prepare(void)
{
	fill(a, 1);
	fill(b, 2);
	fill(c, 3);
	fill(d, 4);
	for (int i = 0; i < LONG; i++) {
		x[i] = value(i, 0, 5);
		y[i] = value(i, 0, 6);
		z[i] = w[i] = 0;
		for (int j = 0; j < LONG; j++)
			wide[i][j] = value(i, j, 7);
	}
	for (int i = 0; i < CUBE; i++)
		for (int j = 0; j < CUBE; j++)
			for (int k = 0; k < CUBE; k++)
				cube[0][i][j][k] = cube[1][i][j][k] = value(i, j, k);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			paths[i][j] = (i * 7 + j * 13) % 97 + 1;
}

static void multiply(double (*to)[N], double (*left)[N], double (*right)[N])
{
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				to[i][j] += left[i][k] * right[k][j];
}

static void gemm(void)
{
	multiply(c, a, b);
}

static void two_products(void)
{
	memset(d, 0, sizeof(d));
	multiply(d, a, b);
	memset(c, 0, sizeof(c));
	multiply(c, d, b);
}

/* A lower triangle's product with itself. */
static void syrk(void)
{
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j <= i; j++)
				c[i][j] += a[i][k] * a[j][k];
}

static void atax(void)
{
	for (int i = 0; i < LONG; i++) {
		double sum = 0;

		for (int j = 0; j < LONG; j++)
			sum += wide[i][j] * x[j];
		for (int j = 0; j < LONG; j++)
			z[j] += wide[i][j] * sum;
	}
}

static void bicg(void)
{
	for (int i = 0; i < LONG; i++) {
		double sum = 0;

		for (int j = 0; j < LONG; j++) {
			z[j] += y[i] * wide[i][j];
			sum += wide[i][j] * x[j];
		}
		w[i] = sum;
	}
}

static void mvt(void)
{
	for (int i = 0; i < LONG; i++)
		for (int j = 0; j < LONG; j++)
			z[i] += wide[i][j] * x[j];
	for (int i = 0; i < LONG; i++)
		for (int j = 0; j < LONG; j++)
			w[j] += wide[i][j] * y[i];
}

static void trisolv(void)
{
	for (int i = 0; i < LONG; i++) {
		double sum = x[i];

		for (int j = 0; j < i; j++)
			sum -= wide[i][j] * z[j];
		z[i] = sum / (wide[i][i] + LONG);
	}
}

static void lu(void)
{
	for (int i = 0; i < N; i++)
		a[i][i] += N;
	for (int k = 0; k < N; k++)
		for (int i = k + 1; i < N; i++) {
			a[i][k] /= a[k][k];
			for (int j = k + 1; j < N; j++)
				a[i][j] -= a[i][k] * a[k][j];
		}
}

static void jacobi(void)
{
	for (int step = 0; step < 10; step++) {
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				b[i][j] = 0.2 * (a[i][j] + a[i][j - 1] + a[i][j + 1] + a[i + 1][j] + a[i - 1][j]);
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				a[i][j] = 0.2 * (b[i][j] + b[i][j - 1] + b[i][j + 1] + b[i + 1][j] + b[i - 1][j]);
	}
}

static void heat(void)
{
	for (int step = 0; step < 10; step++) {
		double (*from)[CUBE][CUBE] = cube[step % 2], (*to)[CUBE][CUBE] = cube[1 - step % 2];

		for (int i = 1; i < CUBE - 1; i++)
			for (int j = 1; j < CUBE - 1; j++)
				for (int k = 1; k < CUBE - 1; k++) {
					double here = from[i][j][k];

					to[i][j][k] = here +
						0.125 * (from[i + 1][j][k] - 2 * here + from[i - 1][j][k]) +
						0.125 * (from[i][j + 1][k] - 2 * here + from[i][j - 1][k]) +
						0.125 * (from[i][j][k + 1] - 2 * here + from[i][j][k - 1]);
				}
	}
}

/* Each element depends on the one before it: no vectors. */
static void seidel(void)
{
	for (int step = 0; step < 2; step++)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				a[i][j] = (a[i - 1][j - 1] + a[i - 1][j] + a[i - 1][j + 1] + a[i][j - 1] + a[i][j] +
					   a[i][j + 1] + a[i + 1][j - 1] + a[i + 1][j] + a[i + 1][j + 1]) / 9;
}

static void shortest_paths(void)
{
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				int by = paths[i][k] + paths[k][j];

				if (by < paths[i][j])
					paths[i][j] = by;
			}
}

static const struct {
	const char *name;
	void (*run)(void);
	/* so that each takes a tenth of a second or more */
	int times;
} kernels[] = {
	{ "gemm", gemm, 16 },
	{ "2mm", two_products, 8 },
	{ "syrk", syrk, 10 },
	{ "atax", atax, 25 },
	{ "bicg", bicg, 25 },
	{ "mvt", mvt, 25 },
	{ "trisolv", trisolv, 60 },
	{ "lu", lu, 30 },
	{ "jacobi-2d", jacobi, 120 },
	{ "heat-3d", heat, 30 },
	{ "seidel-2d", seidel, 60 },
	{ "floyd-warshall", shortest_paths, 6 },
};

/* Each result counts, with a sign that depends on its place. */
static double sum_of(const double *numbers, size_t count)
{
	double sum = 0;

	for (size_t n = 0; n < count; n++)
		sum += n % 3 ? numbers[n] : -numbers[n];
	return sum;
}

int main(int argc, char **argv)
{
	for (size_t n = 0; argc > 1 && n < sizeof(kernels) / sizeof(*kernels); n++) {
		double sum;

		if (strcmp(argv[1], kernels[n].name))
			continue;
		prepare();
		start(argc, argv);
		for (int i = 0; i < kernels[n].times; i++)
			kernels[n].run();
		finish();
		sum = sum_of(*a, N * N) + sum_of(*b, N * N) + sum_of(*c, N * N) + sum_of(*d, N * N) + sum_of(z, LONG) +
		      sum_of(w, LONG) + sum_of(**cube[0], CUBE * CUBE * CUBE);
		for (int i = 0; i < N * N; i++)
			sum += paths[i / N][i % N];
		printf("sum %.17g\n", sum);
		return 0;
	}
	fprintf(stderr, "kernels: name one of");
	for (size_t n = 0; n < sizeof(kernels) / sizeof(*kernels); n++)
		fprintf(stderr, " %s", kernels[n].name);
	fprintf(stderr, "\n");
	return 2;
}
