"""Sums over the samples since the last step, as in src/train/loss-tally.ts and src/train/action-loss.ts."""

import torch


class Tally:
    SUMS = ("loss", "policy", "ratio", "clipped", "capped", "importance", "squared", "behavior", "entropy", "kl")

    def __init__(self):
        self.samples = 0
        self.sums = dict.fromkeys(self.SUMS, 0.0)
        self.largest_ratio = 0.0
        self.largest_weight = 0.0
        self.with_kl = False

    @torch.no_grad()
    def add(self, samples, policy, clipped, entropy, kl, total):
        importance = samples.importance
        # Uncapped, because the purpose is to show what the cap hides.
        moved = samples.log_probs - samples.behavior
        true = torch.exp(moved)
        self.samples += len(moved)
        self.largest_ratio = max(self.largest_ratio, importance.ratio.max().item())
        self.largest_weight = max(self.largest_weight, importance.staleness.max().item())
        self.with_kl = self.with_kl or kl is not None
        figures = {
            "loss": total,
            "policy": samples.weight * policy,
            "ratio": importance.ratio,
            "clipped": clipped.double(),
            "capped": importance.capped.double(),
            "importance": true,
            "squared": true * true,
            "behavior": torch.expm1(moved) - moved,
            "entropy": entropy,
            **({} if kl is None else {"kl": kl}),
        }
        for name, values in figures.items():
            self.sums[name] += values.sum().item()

    def metrics(self):
        """Each sample counts once, whatever its weight; only losses are weighted."""
        if self.samples == 0:
            return {"samples": 0, "loss": 0}
        sums, count = self.sums, self.samples
        found = {
            "samples": count,
            "loss": sums["loss"],
            "ratio": sums["ratio"] / count,
            "largestRatio": self.largest_ratio,
            "clipFraction": sums["clipped"] / count,
            "cappedShare": sums["capped"] / count,
            "largestWeight": self.largest_weight,
            "effectiveSampleShare": sums["importance"] ** 2 / (sums["squared"] * count) if sums["squared"] > 0 else 0,
            "klFromBehavior": sums["behavior"] / count,
            "policyLoss": sums["policy"],
            "entropy": sums["entropy"] / count,
        }
        return {**found, "kl": sums["kl"] / count} if self.with_kl else found
