// Command gpusim registers simulated GPUs with the kubelet, so that allocation, restart and failure of GPUs are real where no GPU is.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// retryDelay is the pause before the kubelet is tried again.
const retryDelay = time.Second

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "extended resource to offer")
	count := flag.Int("count", 4, "number of devices")
	memory := flag.Int("memory-mib", 16384, "memory of each device in MiB, as told by GET /devices")
	numaNodes := flag.Int("numa-nodes", 1, "NUMA nodes that the devices are spread over")
	seed := flag.String("seed", os.Getenv("NODE_NAME"), "what the device ids are derived from; the node's name, so that they survive restarts")
	directory := flag.String("plugin-directory", api.DevicePluginPath, "the kubelet's directory of device plugins")
	listen := flag.String("listen", ":9410", "address of the control endpoint")
	flag.Parse()
	if *count < 1 || *numaNodes < 1 || *numaNodes > *count || *memory < 1 {
		log.Fatalf("--count %d, --numa-nodes %d and --memory-mib %d must be positive, and no NUMA node may be empty", *count, *numaNodes, *memory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	devices := newFleet(*seed, *count, *memory, *numaNodes)
	server := &http.Server{Addr: *listen, Handler: control(devices), ReadHeaderTimeout: callTimeout}
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatalf("control endpoint: %v", err)
		}
	}()
	run(ctx, &plugin{resource: *resource, fleet: devices}, *directory)
	_ = server.Close()
}

// run keeps the plugin registered until ctx ends; the kubelet may be away for any time.
func run(ctx context.Context, p *plugin, directory string) {
	for ctx.Err() == nil {
		log.Printf("registering %s", p.resource)
		if err := p.serve(ctx, directory); err != nil {
			log.Printf("%v; trying again in %s", err, retryDelay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}
