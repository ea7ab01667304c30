// Command pulumi-resource-kubernetes serves the Pulumi Kubernetes provider.
//
// The provider's own main package embeds generated files that its published Go module does not carry.
// The toolchain builder writes both files beside this one (see tools/toolchain/provider.py) before it compiles.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema-embed.json
var pulumiSchema []byte

//go:embed terraform-mapping-embed.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, pulumiSchema, terraformMapping)
}
