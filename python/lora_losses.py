"""Losses of samples, as in src/train/losses.ts and src/train/divergence.ts, with autograd. In float64, one number per sample."""

import math

import torch


class Rule:
    """Settings of a loss, from lossRule() of TypeScript. Infinity is null, because JSON cannot represent it."""

    def __init__(self, given):
        for name, value in given.items():
            setattr(self, name, math.inf if value is None else value)


class Importance:
    """p / proximal, proximal / behavior with its cap, and their product."""

    def __init__(self, samples, rule):
        log_probs, behavior, proximal = samples.log_probs, samples.behavior, samples.proximal
        self.ratio = torch.exp(log_probs - proximal)
        self.staleness = torch.exp(proximal - behavior)
        self.capped = self.staleness > rule.maxWeight
        self.correction = self.staleness.clamp(max=rule.maxWeight)
        # One exponential instead of a product, which could be 0 times infinity if the proximal policy is far
        # from both others.
        cap = math.log(rule.maxWeight) if math.isfinite(rule.maxWeight) else 0.0
        self.log_product = torch.where(self.capped, cap + log_probs - proximal, log_probs - behavior)
        self.product = torch.exp(self.log_product)


class Samples:
    """The numbers of the samples of a sheet. With `sft`, samples count as sampled by the current model."""

    def __init__(self, log_probs, rows, sheet, rule):
        def taken(values):
            return torch.from_numpy(values[sheet.samples])

        own = log_probs.detach()
        self.log_probs = log_probs
        self.behavior = own if rule.name == "sft" else taken(rows.behavior)
        self.proximal = own if rule.name == "sft" else taken(rows.proximal)
        self.advantage = taken(rows.advantage)
        self.weight = taken(rows.weight)
        self.importance = Importance(self, rule)


def policy_loss(samples, rule):
    """The loss of each sample, and whether a bound of the ratio took effect."""
    return LOSSES[rule.name](samples, samples.importance, rule)


def reinforce(samples, importance, rule):
    return -importance.correction * samples.advantage * samples.log_probs, never(samples)


def importance_sampled(samples, importance, rule):
    return -importance.product * samples.advantage, never(samples)


def cispo(samples, importance, rule):
    # The clipped ratio is a constant weight, so every sample keeps a gradient.
    ratio = importance.ratio.detach()
    clipped = ratio.clamp(rule.minRatio, rule.maxRatio)
    return -importance.correction * clipped * samples.advantage * samples.log_probs, clipped != ratio


def clip(samples, importance, rule):
    ratio, advantage = importance.ratio.detach(), samples.advantage
    bound = ratio.clone()
    bound[(advantage > 0) & (ratio > rule.maxRatio)] = rule.maxRatio
    bound[(advantage < 0) & (ratio > rule.dualClip)] = rule.dualClip
    bound[(advantage < 0) & (ratio < rule.minRatio)] = rule.minRatio
    bounded = bound != ratio
    # Bounded before exponentiation, because the gradient of infinity is NaN, even times 0.
    free = torch.exp(torch.where(bounded, 0.0, importance.log_product))
    return -advantage * torch.where(bounded, importance.correction * bound, free), bounded


def sft(samples, importance, rule):
    return -samples.log_probs, never(samples)


def never(samples):
    return torch.zeros_like(samples.log_probs, dtype=torch.bool)


LOSSES = {"clip": clip, "is": importance_sampled, "cispo": cispo, "reinforce": reinforce, "sft": sft}


def sampled_kl(samples, reference, rule):
    """KL(p ‖ reference) by k3. `klCorrection`: weighted by p / behavior, which is differentiated too."""
    distance = samples.log_probs - reference
    k3 = torch.expm1(-distance) + distance
    return samples.importance.product * k3 if rule.klCorrection else k3
