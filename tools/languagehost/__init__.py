"""A small `pulumi-language-python`, for machines without Pulumi's own: serves programs and policy packs to the engine (docs/adr/0001-toolchain-from-go-modules.md)."""
