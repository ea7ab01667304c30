// Command pulumi-resource-kubernetes serves the Pulumi Kubernetes provider.
//
// The provider's own main package embeds generated files that its published Go module does not carry.
// The toolchain builder writes both files beside this one (see tools/toolchain/provider.py) before it compiles.
package main

import (
	_ "embed"
	"os"
	"time"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema-embed.json
var pulumiSchema []byte

//go:embed terraform-mapping-embed.json
var terraformMapping []byte

func main() {
	go endWithEngine(os.Getppid())
	provider.Serve("kubernetes", version.Version, pulumiSchema, terraformMapping)
}

// endWithEngine ends the provider when the engine that started it is gone: a killed engine says no farewell, and without this its provider
// would stay for ever.
func endWithEngine(engine int) {
	for os.Getppid() == engine {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}
