"""Ten short programs in NumPy's form: each takes the namespace, and returns what it found."""

from __future__ import annotations

from typing import Any

Results = dict[str, Any]


def image_filter(np: Any) -> Results:
    image = (np.arange(64 * 48).reshape(64, 48) * 37 % 256).astype(np.uint8)
    gray = image.astype(np.float32) / 255
    kernel = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    padded, smooth = np.pad(gray, 1, mode="edge"), np.zeros_like(gray)
    for i in range(3):
        for j in range(3):
            smooth += kernel[i, j] * padded[i : i + 64, j : j + 48]
    across, down = smooth[:, 2:] - smooth[:, :-2], smooth[2:] - smooth[:-2]
    size = np.hypot(across[1:-1], down[:, 1:-1])
    counts = np.cumsum(np.bincount(image.ravel(), minlength=256))
    table = (counts - counts.min()) * 255 // (counts.max() - counts.min())
    windows = np.lib.stride_tricks.sliding_window_view(gray, (3, 3))
    return {
        "smooth": smooth,
        "edges": (size > size.mean() + size.std()).sum(),
        "histogram": np.histogram(image, bins=16, range=(0, 256))[0],
        "equalised": table[image].astype(np.uint8),
        "median": np.median(windows, axis=(2, 3)),
        "rotated": np.rot90(image)[::2, ::-1],
    }


def k_means(np: Any) -> Results:
    t = np.linspace(0, 6, 90)
    points = np.stack([np.sin(t * 3) + t, np.cos(t * 5) - t], axis=1)
    centres = points[[0, 40, 80]].copy()
    for _ in range(10):
        distances = ((points[:, None, :] - centres[None]) ** 2).sum(-1)
        labels = distances.argmin(axis=1)
        moved = np.array(
            [
                points[labels == k].mean(axis=0) if (labels == k).any() else centres[k]
                for k in range(3)
            ]
        )
        if np.allclose(moved, centres):
            break
        centres = moved
    _, counts = np.unique(labels, return_counts=True)
    inertia = distances[np.arange(len(points)), labels].sum()
    return {"centres": centres, "labels": labels, "counts": counts, "inertia": inertia}


def principal_components(np: Any) -> Results:
    t = np.linspace(0, 6, 90)
    x = np.column_stack([np.sin(t), np.cos(2 * t), t**2 / 30, 2 * np.sin(t) + np.cos(7 * t) / 10])
    x -= x.mean(0)
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    w, _ = np.linalg.eigh(np.cov(x, rowvar=False))
    return {
        "singular": s,
        "projected": np.abs(x @ vt[:2].T),
        "variances": w[::-1],
        "explained": (s**2 / (s**2).sum()).cumsum(),
        "correlation": np.corrcoef(x.T),
    }


def monte_carlo(np: Any) -> Results:
    state, numbers = 12345, []
    for _ in range(200):
        state = (1103515245 * state + 12345) % 2**31
        numbers.append(state / 2**31)
    u = np.array(numbers)
    walk = np.where(u < 0.5, -1, 1).cumsum()
    payoff = np.maximum(100 * np.exp(0.2 * (u - 0.5)) - 100, 0)
    return {
        "walk": walk,
        "highest": walk.max(),
        "quantiles": np.quantile(u, [0.1, 0.5, 0.9]),
        "price": payoff.mean(),
        "error": payoff.std(ddof=1) / np.sqrt(len(u)),
        "bins": np.digitize(u, np.linspace(0, 1, 5)),
    }


def game_of_life(np: Any) -> Results:
    grid = np.zeros((20, 20), dtype=int)
    grid[1, 2] = grid[2, 3] = 1
    grid[3, 1:4] = 1
    grid[10:13, 10] = 1
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    for _ in range(12):
        around = sum(np.roll(np.roll(grid, i, 0), j, 1) for i, j in steps)
        grid = ((around == 3) | ((grid == 1) & (around == 2))).astype(int)
    row = "".join("#" if cell else "." for cell in grid[5])
    return {"grid": grid, "alive": int(grid.sum()), "row": row}


def frequency_filter(np: Any) -> Results:
    n = 512
    t = np.arange(n) / n
    signal = np.sin(2 * np.pi * 5 * t) + 0.5 * np.sin(2 * np.pi * 60 * t)
    spectrum, f = np.fft.rfft(signal), np.fft.rfftfreq(n, 1 / n)
    spectrum[f > 20] = 0
    return {
        "filtered": np.fft.irfft(spectrum, n),
        "peak": f[np.argmax(np.abs(spectrum))],
        "power": np.abs(np.fft.fft(signal)) ** 2 / n,
        "shifted": np.fft.fftshift(np.fft.fftfreq(8)),
        "windowed": (signal * np.hanning(n)).sum(),
    }


def kalman_filter(np: Any) -> Results:
    a, h = np.array([[1, 0.1], [0, 1]]), np.array([[1.0, 0]])
    q, r = np.eye(2) * 1e-3, np.array([[0.1]])
    x, p, estimates = np.zeros(2), np.eye(2), []
    for i in range(50):
        z = np.array([np.sin(i / 10) + 0.1 * np.cos(i * 7)])
        x, p = a @ x, a @ p @ a.T + q
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x, p = x + gain @ (z - h @ x), (np.eye(2) - gain @ h) @ p
        estimates.append(x[0])
    return {"estimates": np.array(estimates), "covariance": p}


SUDOKU = """
53..7.... 6..195... .98....6. 8...6...3 4..8.3..1 7...2...6 .6....28. ...419..5 ....8..79
"""


def candidates(np: Any, grid: Any, i: int, j: int) -> Any:
    free = np.ones(10, dtype=bool)
    free[0] = False
    free[grid[i]] = False
    free[grid[:, j]] = False
    free[grid[i // 3 * 3 : i // 3 * 3 + 3, j // 3 * 3 : j // 3 * 3 + 3].ravel()] = False
    return np.nonzero(free)[0]


def solve(np: Any, grid: Any) -> bool:
    empty = np.argwhere(grid == 0)
    if len(empty) == 0:
        return True
    _, i, j = min((len(candidates(np, grid, i, j)), i, j) for i, j in empty.tolist())
    for value in candidates(np, grid, i, j):
        grid[i, j] = value
        if solve(np, grid):
            return True
    grid[i, j] = 0
    return False


def sudoku(np: Any) -> Results:
    digits = [[0 if c == "." else int(c) for c in row] for row in SUDOKU.split()]
    grid = np.array(digits)
    return {"solved": solve(np, grid), "grid": grid}


def oscillator(np: Any) -> Results:
    def slope(y: Any) -> Any:
        return np.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    y, h, path = np.array([2.0, 0.0]), 0.05, np.empty((100, 2))
    for i in range(100):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[i] = y
    zeros = np.flatnonzero(np.diff(np.sign(path[:, 0])))
    return {"path": path, "zeros": zeros, "area": np.trapezoid(path[:, 0], dx=h)}


def letters(np: Any) -> Results:
    text = "the quick brown fox jumps over the lazy dog and the cat" * 3
    codes = np.frombuffer(text.encode(), dtype=np.uint8)
    found = codes[(codes >= 97) & (codes <= 122)] - 97
    counts = np.bincount(found, minlength=26)
    order = np.argsort(-counts, kind="stable")
    shares = counts[counts > 0] / counts.sum()
    bars = [f"{chr(97 + int(i))} {'*' * int(counts[i])}" for i in order[:5]]
    return {"counts": counts, "bars": bars, "entropy": -(shares * np.log2(shares)).sum()}


SCRIPTS = (
    *(image_filter, k_means, principal_components, monte_carlo, game_of_life),
    *(frequency_filter, kalman_filter, sudoku, oscillator, letters),
)
