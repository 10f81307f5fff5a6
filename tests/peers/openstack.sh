#!/usr/bin/env bash
# The services of a real OpenStack on the loopback: keystone, glance, placement, neutron, nova, octavia, with MariaDB and RabbitMQ.
#   openstack.sh up      starts them anew, with nothing in them but their own users; prints the path of a clouds.yaml, which has
#                        the clouds "peer" (a member of a project) and "peer-admin"
#   openstack.sh down    ends them and removes what they kept
# What they are: `scripts/setup.sh openstack`. The slow part, the tables of all databases, is made once and kept in the cache. The
# ports are the usual ones, so there is one such cloud on a computer: whoever starts it holds a lock (test_openstack_real.py).
# nova's hypervisor is nova_boots.py, which tells a socket what to boot. Octavia's amphorae are servers that nobody boots.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
CACHE=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
V=$CACHE/openstack      # the virtual environment
S=$CACHE/openstack-state
H=127.0.0.1
PW=a-SECRET-of-peers
SOCK=$S/mysql.socket
SERVICES=(nova-compute octavia-worker octavia-api nova-scheduler nova-conductor nova-api neutron placement glance keystone rabbit epmd mariadb)
PORTS=(4369 5000 5672 8774 8778 9292 9696 9876)

die() { echo "openstack: $*" >&2; exit 1; }
say() { echo "openstack: $SECONDS s: $*" >&2; }

# --- processes -----------------------------------------------------------------------------------------------------
# A file has the process and when it began: a number that was given again is never taken for ours.
began() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; }
pid_of() { local p t; read -r p t 2>/dev/null <"$S/run/$1.pid" && [ -n "$t" ] && [ "$(began "$p")" = "$t" ] && echo "$p"; }
background() {
  local name=$1
  shift
  setsid "$@" >"$S/log/$name.out" 2>&1 </dev/null &
  echo "$! $(began $!)" >"$S/run/$name.pid"
}
# Each is the first of its session, and of its group.
end() {
  local n p i
  for n in "$@"; do if p=$(pid_of "$n"); then kill -TERM "$p" 2>/dev/null || true; fi; done
  for n in "$@"; do
    p=$(pid_of "$n") || continue
    for ((i = 0; i < 80; i++)); do pid_of "$n" >/dev/null || break; sleep 0.25; done
    kill -KILL -- "-$p" 2>/dev/null || true
  done
}
# until WHAT SERVICE COMMAND…: the service must live
until_it() {
  local what=$1 service=$2 i
  shift 2
  for ((i = 0; i < 1800; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    pid_of "$service" >/dev/null || break
    sleep 0.5
  done
  tail -n 30 "$S/log/$service".* >&2 || true
  die "$what: it does not come"
}
listens() { (exec 3<>"/dev/tcp/$H/$1") 2>/dev/null; }
answers() { [ "$(curl -s --noproxy '*' -o /dev/null -w '%{http_code}' "http://$H:$1")" != 000 ]; }
sql() { mariadb --no-defaults -N -uroot -S "$SOCK" "$@"; }

# --- settings ------------------------------------------------------------------------------------------------------
login() {
  printf '%s = %s\n' auth_type password auth_url "http://$H:5000/v3" username "$1" password $PW project_name service \
    user_domain_name Default project_domain_name Default region_name RegionOne
}
tokens() {
  echo "[keystone_authtoken]"
  printf '%s = %s\n' www_authenticate_uri "http://$H:5000" memcache_security_strategy None service_token_roles_required true service_token_roles service
  login "$1"
}
database() { echo "connection = mysql+pymysql://root@localhost/$1?unix_socket=$SOCK&charset=utf8"; }
BROKER="transport_url = rabbit://guest:guest@$H:5672/"

settings() {
  local e=$S/etc
  echo "listeners.tcp.1 = $H:5672" >"$e/rabbitmq.conf"
  cat >"$e/keystone.conf" <<END
[DEFAULT]
log_file = $S/log/keystone.log
[database]
$(database keystone)
[token]
provider = fernet
[fernet_tokens]
key_repository = $e/fernet
[credential]
key_repository = $e/credential
[identity]
password_hash_rounds = 4
END
  cat >"$e/glance-api.conf" <<END
[DEFAULT]
log_file = $S/log/glance.log
enabled_backends = local:file
[glance_store]
default_backend = local
[local]
filesystem_store_datadir = $S/images
[os_glance_staging_store]
filesystem_store_datadir = $S/images/staging
[os_glance_tasks_store]
filesystem_store_datadir = $S/images/tasks
[database]
$(database glance)
[paste_deploy]
flavor = keystone
config_file = $V/etc/glance/glance-api-paste.ini
$(tokens glance)
END
  cat >"$e/placement.conf" <<END
[DEFAULT]
log_file = $S/log/placement.log
[placement_database]
$(database placement)
[api]
auth_strategy = keystone
$(tokens placement)
END
  # "test" is a mechanism driver of neutron's own: it binds each port of the host of that name, and it becomes ACTIVE
  cat >"$e/neutron.conf" <<END
[DEFAULT]
log_file = $S/log/neutron.log
state_path = $S/neutron
core_plugin = ml2
service_plugins = router,segments
$BROKER
auth_strategy = keystone
api_paste_config = $V/etc/neutron/api-paste.ini
global_physnet_mtu = 1500
[database]
$(database neutron)
[oslo_concurrency]
lock_path = $S/lock
[nova]
$(login nova)
$(tokens neutron)
[ml2]
type_drivers = flat,vxlan,local
tenant_network_types = vxlan
mechanism_drivers = test
extension_drivers = port_security
[ml2_type_flat]
flat_networks = *
[ml2_type_vxlan]
vni_ranges = 1:1000
END
  cat >"$e/nova-compute.conf" <<END
[DEFAULT]
log_file = $S/log/nova.log
host = host-ovs-filter-active
state_path = $S/nova
my_ip = $H
$BROKER
compute_driver = nova_boots.Driver
sync_power_state_interval = -1
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = $V/etc/nova/api-paste.ini
[oslo_concurrency]
lock_path = $S/lock
[oslo_policy]
enforce_new_defaults = true
[scheduler]
discover_hosts_in_cells_interval = 10
workers = 1
[filter_scheduler]
track_instance_changes = false
[conductor]
workers = 1
[quota]
instances = 1000
cores = 10000
ram = 10000000
[vnc]
enabled = false
[glance]
api_servers = http://$H:9292
[placement]
$(login placement)
[neutron]
$(login neutron)
[service_user]
send_service_user_token = true
$(login nova)
$(tokens nova)
END
  # nova-compute must not see a database
  { cat "$e/nova-compute.conf"; echo "[api_database]"; database nova_api; echo "[database]"; database nova; } >"$e/nova.conf"
  cat >"$e/octavia.conf" <<END
[DEFAULT]
log_file = $S/log/octavia.log
$BROKER
[database]
$(database octavia)
[api_settings]
bind_host = $H
auth_strategy = keystone
enabled_provider_drivers = amphora:servers that nobody boots
default_provider_driver = amphora
healthcheck_enabled = true
[oslo_messaging]
topic = octavia_prov
rpc_thread_pool_size = 2
[controller_worker]
workers = 1
amphora_driver = amphora_noop_driver
compute_driver = compute_nova_driver
network_driver = allowed_address_pairs_driver
image_driver = image_glance_driver
volume_driver = volume_noop_driver
amp_flavor_id = amphora
amp_active_retries = 100
amp_active_wait_sec = 2
amp_image_tag = amphora
client_ca = $e/ca.pem
loadbalancer_topology = SINGLE
[certificates]
cert_manager = noop_cert_manager
cert_generator = local_cert_generator
ca_certificate = $e/ca.pem
ca_private_key = $e/ca.key
server_certs_key_passphrase = insecure-key-do-not-use-this-key
[haproxy_amphora]
client_cert = $e/ca.pem
server_ca = $e/ca.pem
[health_manager]
heartbeat_key = insecure
[service_auth]
$(login octavia)
[neutron]
region_name = RegionOne
$(tokens octavia)
END
  local auth="user_domain_name: Default, project_domain_name: Default"
  cat >"$S/clouds.yaml" <<END
clouds:
  peer-admin:
    region_name: RegionOne
    auth: {auth_url: "http://$H:5000/v3", username: admin, password: $PW, project_name: admin, $auth}
  peer:
    region_name: RegionOne
    auth: {auth_url: "http://$H:5000/v3", username: demo, password: $PW, project_name: demo, $auth}
  octavia:
    region_name: RegionOne
    auth: {auth_url: "http://$H:5000/v3", username: octavia, password: $PW, project_name: service, $auth}
END
}

# --- the tables, and keystone's first user: once -----------------------------------------------------------------------
# Nothing here must survive a loss of power.
start_mariadb() {
  background mariadb mariadbd --no-defaults --user="$(id -un)" --datadir="$S/mysql" --socket="$SOCK" --skip-networking --pid-file="$S/run/mariadbd" \
    --max-connections=500 --skip-log-bin --innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=0 --skip-innodb-doublewrite
  until_it mariadb mariadb sql -e "select 1"
}
tables() {
  local d nova=(nova-manage --config-file "$S/etc/nova.conf") keystone=(keystone-manage --config-file "$S/etc/keystone.conf")
  mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$S/mysql" --auth-root-authentication-method=normal >"$S/log/mariadb-install.out" 2>&1
  start_mariadb
  for d in keystone glance placement neutron nova_api nova nova_cell0 octavia; do echo "CREATE DATABASE $d CHARACTER SET utf8;"; done | sql
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$S/etc/ca.key" -out "$S/etc/ca.pem" -days 3650 -subj /CN=peers 2>/dev/null
  (
    "${keystone[@]}" db_sync
    "${keystone[@]}" fernet_setup --keystone-user root --keystone-group root
    "${keystone[@]}" credential_setup --keystone-user root --keystone-group root
    "${keystone[@]}" bootstrap --bootstrap-password $PW --bootstrap-region-id RegionOne --bootstrap-admin-url "http://$H:5000/v3/" \
      --bootstrap-internal-url "http://$H:5000/v3/" --bootstrap-public-url "http://$H:5000/v3/"
    placement-manage --config-file "$S/etc/placement.conf" db sync
    glance-manage --config-file "$S/etc/glance-api.conf" db_sync
    octavia-db-manage --config-file "$S/etc/octavia.conf" upgrade head
  ) >"$S/log/tables-1.out" 2>&1 &
  local first=$!
  (
    "${nova[@]}" api_db sync
    "${nova[@]}" cell_v2 map_cell0 --database_connection "mysql+pymysql://root@localhost/nova_cell0?unix_socket=$SOCK&charset=utf8"
    "${nova[@]}" cell_v2 create_cell --name cell1
    "${nova[@]}" db sync
    neutron-db-manage --config-file "$S/etc/neutron.conf" upgrade heads
  ) >"$S/log/tables-2.out" 2>&1 || { tail -n 30 "$S/log/tables-2.out" >&2; die "no tables"; }
  wait $first || { tail -n 30 "$S/log/tables-1.out" >&2; die "no tables"; }
  end mariadb
}

# --- the services --------------------------------------------------------------------------------------------------
# wsgi NAME PORT MODULE ARGUMENT…
wsgi() {
  local name=$1 port=$2 module=$3
  shift 3
  background "$name" "$V/bin/uwsgi" --virtualenv "$V" --http-socket "$H:$port" --module "$module" --master --processes 1 --threads 6 \
    --enable-threads --lazy-apps --die-on-term --buffer-size 65535 --add-header 'Connection: close' --http-chunked-input --thunder-lock --disable-logging "$@"
}
users() {
  "$V/bin/python" - "$PW" "$H" <<'END'
import sys
import openstack
password, host = sys.argv[1:]
i = openstack.connect(cloud="peer-admin").identity
projects = {n: i.create_project(name=n, domain_id="default") for n in ("service", "demo")}
roles = {r.name: r for r in i.roles()}
def give(project, user, *names):
    for n in names:
        roles[n] = roles.get(n) or i.create_role(name=n)
        i.assign_project_role_to_user(project, user, roles[n])
for n in ("nova", "glance", "placement", "neutron", "octavia"):
    give(projects["service"], i.create_user(name=n, password=password, domain_id="default"), "admin", "service")
give(projects["demo"], i.create_user(name="demo", password=password, domain_id="default"), "member", "reader", "load-balancer_member")
give(next(i.projects(name="admin")), next(i.users(name="admin")), "load-balancer_admin")
for kind, name, where in (("image", "glance", "9292"), ("compute", "nova", "8774/v2.1"), ("placement", "placement", "8778"), ("network", "neutron", "9696"),
                          ("load-balancer", "octavia", "9876")):
    service = i.create_service(type=kind, name=name)
    for f in ("public", "internal", "admin"):
        i.create_endpoint(service_id=service.id, interface=f, region_id="RegionOne", url=f"http://{host}:{where}")
END
}
# What an amphora is made of, and the network that it is managed in.
amphorae() {
  "$V/bin/python" - >"$S/etc/octavia-more.conf" <<'END'
import openstack
c = openstack.connect(cloud="octavia")
c.compute.create_flavor(name="amphora", id="amphora", ram=512, vcpus=1, disk=2)
c.image.create_image(name="amphora", data=b"x" * 4096, disk_format="raw", container_format="bare", tags=["amphora"], allow_duplicates=True, validate_checksum=False)
n = c.network.create_network(name="lb-mgmt")
c.network.create_subnet(name="lb-mgmt", network_id=n.id, ip_version=4, cidr="172.31.0.0/20", gateway_ip=None)
print(f"[controller_worker]\namp_boot_network_list = {n.id}\namp_image_owner_id = {c.current_project_id}")
END
}
has_a_host() { [ "$(sql -e 'select count(*) from nova_api.host_mappings')" = 1 ]; }

up() {
  local p key
  [ "$(id -u)" = 0 ] || die "needs root"
  [ -x "$V/bin/nova-compute" ] && command -v mariadbd >/dev/null && [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || die "not installed: scripts/setup.sh openstack"
  down
  for p in "${PORTS[@]}"; do ! listens "$p" || die "something listens on port $p already"; done
  mkdir -p "$S"/{etc,log,run,images,nova,neutron,lock,rabbit}
  export PATH=$V/bin:$PATH OS_CLIENT_CONFIG_FILE=$S/clouds.yaml no_proxy=$H
  settings
  key=$({ declare -f tables; echo "$PW"; readlink -f "$V"; } | sha256sum | cut -c1-12)
  if [ ! -d "$CACHE/openstack-tables-$key" ]; then
    say "the tables of all databases, once (some minutes)"
    tables
    rm -rf "$CACHE"/openstack-tables-*
    mkdir "$CACHE/openstack-tables-new"
    cp -a "$S/mysql" "$S/etc" "$CACHE/openstack-tables-new/"
    mv "$CACHE/openstack-tables-new" "$CACHE/openstack-tables-$key"
  else
    cp -a "$CACHE/openstack-tables-$key/." "$S/"
  fi
  start_mariadb
  background epmd epmd -address $H
  background rabbit env HOME="$S/rabbit" ERL_EPMD_ADDRESS=$H RABBITMQ_NODENAME=peer@localhost RABBITMQ_MNESIA_BASE="$S/rabbit/mnesia" \
    RABBITMQ_LOG_BASE="$S/rabbit/log" RABBITMQ_CONFIG_FILE="$S/etc/rabbitmq" RABBITMQ_PID_FILE="$S/rabbit/pid" \
    'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}' /usr/lib/rabbitmq/bin/rabbitmq-server
  wsgi keystone 5000 keystone.wsgi.api --env OS_KEYSTONE_CONFIG_FILES="$S/etc/keystone.conf" --env OS_KEYSTONE_CONFIG_DIR="$S/etc"
  until_it keystone keystone answers 5000/v3
  users
  until_it rabbit rabbit listens 5672
  say "keystone, MariaDB and RabbitMQ are there"
  wsgi glance 9292 glance.wsgi.api --env OS_GLANCE_CONFIG_DIR="$S/etc" --env OS_GLANCE_CONFIG_FILES=glance-api.conf
  wsgi placement 8778 placement.wsgi.api --env OS_PLACEMENT_CONFIG_DIR="$S/etc"
  # the mechanism driver is full of asserts for unit tests, which would fail here: -O leaves them out
  wsgi neutron 9696 neutron.wsgi.api --optimize 1 --env OS_NEUTRON_CONFIG_DIR="$S/etc" --env OS_NEUTRON_CONFIG_FILES=neutron.conf
  cp "$V/etc/nova/api-paste.ini" "$S/etc/nova-api-paste.ini"
  wsgi nova-api 8774 nova.wsgi.osapi_compute --env OS_NOVA_CONFIG_DIR="$S/etc" --env "OS_NOVA_CONFIG_FILES=nova-api-paste.ini;nova.conf"
  background nova-conductor nova-conductor --config-file "$S/etc/nova.conf"
  background nova-scheduler nova-scheduler --config-file "$S/etc/nova.conf"
  until_it placement placement answers 8778/
  # shellcheck disable=SC2016
  background nova-compute env SLIPWAY_BOOTS="$S/run/boots" python -c 'import sys, nova.cmd.compute, nova.virt
nova.virt.__path__.append(sys.argv.pop(1))
nova.cmd.compute.main()' "$here" --config-file "$S/etc/nova-compute.conf"
  until_it glance glance answers 9292/healthcheck
  until_it neutron neutron answers 9696/
  until_it nova-api nova-api answers 8774/
  amphorae
  local octavia="--config-file $S/etc/octavia.conf --config-file $S/etc/octavia-more.conf"
  wsgi octavia-api 9876 octavia.wsgi.api --pyargv "$octavia"
  # shellcheck disable=SC2086
  background octavia-worker octavia-worker $octavia
  until_it octavia-api octavia-api answers 9876/
  until_it "a host of nova's" nova-compute has_a_host
  say "all services are there"
  echo "$S/clouds.yaml"
}

down() {
  if [ -d "$S/run" ]; then
    end "${SERVICES[@]:0:10}"
    end "${SERVICES[@]:10:1}"
    end "${SERVICES[@]:11}"
  fi
  [ -n "${KEEP:-}" ] && [ "$verb" = down ] || rm -rf "$S"
}

verb=${1:-}
case $verb in
up | down) "$verb" ;;
*) die "usage: openstack.sh up | down" ;;
esac
