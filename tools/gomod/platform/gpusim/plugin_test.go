package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const testTimeout = 20 * time.Second

// fakeKubelet is the kubelet's end of the registration.
type fakeKubelet struct {
	api.UnimplementedRegistrationServer
	registered chan *api.RegisterRequest
}

func (k *fakeKubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.registered <- request
	return &api.Empty{}, nil
}

// startKubelet clears the directory as the kubelet does and serves its socket there.
func startKubelet(t *testing.T, directory string) (*fakeKubelet, func()) {
	t.Helper()
	sockets, _ := filepath.Glob(filepath.Join(directory, "*.sock"))
	for _, path := range sockets {
		_ = os.Remove(path)
	}
	listener, err := net.Listen("unix", filepath.Join(directory, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	kubelet := &fakeKubelet{registered: make(chan *api.RegisterRequest, 1)}
	server := grpc.NewServer()
	api.RegisterRegistrationServer(server, kubelet)
	go func() { _ = server.Serve(listener) }()
	return kubelet, server.Stop
}

func awaitRegistration(t *testing.T, kubelet *fakeKubelet) *api.RegisterRequest {
	t.Helper()
	select {
	case request := <-kubelet.registered:
		return request
	case <-time.After(testTimeout):
		t.Fatal("the plugin did not register")
		return nil
	}
}

func TestRegistersAgainWhenTheKubeletRestartsAndReportsHealth(t *testing.T) {
	// Not t.TempDir: a socket's path may have 107 characters, and that one holds the test's name.
	directory, err := os.MkdirTemp("", "gpusim")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(directory)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	devices := newFleet("node", 2, 1, 1)
	first, stopFirst := startKubelet(t, directory)
	go run(ctx, &plugin{resource: "example.com/gpu.shared", fleet: devices}, directory)
	if request := awaitRegistration(t, first); request.ResourceName != "example.com/gpu.shared" || request.Version != api.Version {
		t.Fatalf("registered %v", request)
	}
	stopFirst()
	second, stopSecond := startKubelet(t, directory)
	defer stopSecond()
	request := awaitRegistration(t, second)

	connection, err := grpc.NewClient("unix://"+filepath.Join(directory, request.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := api.NewDevicePluginClient(connection).ListAndWatch(ctx, &api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := stream.Recv()
	if err != nil || len(before.Devices) != 2 || before.Devices[1].Health != api.Healthy {
		t.Fatalf("first report: %v, %v", before, err)
	}
	devices.setHealth("1", api.Unhealthy)
	after, err := stream.Recv()
	if err != nil || after.Devices[1].Health != api.Unhealthy || after.Devices[0].Health != api.Healthy {
		t.Fatalf("report after the fault: %v, %v", after, err)
	}
}
