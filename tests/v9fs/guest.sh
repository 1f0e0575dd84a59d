#!/bin/busybox sh
# First process of the small system that `run.sh` starts: mounts the agents' tree with the kernel's 9P client and
# uses it as a person would. One line a check, `ok` or `FAILED`.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp
for module in e1000 netfs fscache 9pnet 9pnet_fd 9p; do insmod /modules/$module.ko; done
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0

version=
# The kernel may have left the cursor in the middle of a line.
echo

# check NAME WANTED GOT
check() {
  if [ "$2" = "$3" ]; then
    echo "ok      $version $1"
  else
    echo "FAILED  $version $1: wanted '$2', got '$3'"
  fi
}

# The last words of what a failing command says.
refusal() {
  "$@" 2>&1 | sed 's/.*: //'
}

use_the_tree() {
  cd /mnt || return
  check "the root lists the sessions" agents "$(ls | grep -x agents)"
  check "a directory is 0500" dr-x------ "$(ls -ld roles | cut -c1-10)"

  exec 3<> agents/ctl
  echo "new echo /tmp alias=$alias" >&3
  read -r id <&3
  exec 3>&-
  check "ctl answers the id on the same open file" 8 "${#id}"
  check "the new session is listed" "$id" "$(ls agents | grep -x "$id")"
  check "wait blocks until it is ready" idle "$(cat agents/$alias/wait)"

  echo 'via mount' > agents/$alias/in
  check "a prompt is answered" "idle echo: via mount" "$(echo $(cat agents/$alias/wait agents/$alias/out))"
  echo again >> $id/in
  check "appending is a prompt too" "idle echo: again" "$(echo $(cat $id/wait $id/out))"

  # 100 KB of lines, which the kernel cuts into many writes.
  seq 1 17000 | sed 's/^/line /' > /tmp/context
  cat /tmp/context > $id/context
  check "a long document arrives whole" "$(md5sum < /tmp/context)" "$(md5sum < $id/context)"
  dd if=$id/context bs=1000 skip=20 count=1 2>/dev/null > /tmp/piece
  check "a piece of it can be read" "$(dd if=/tmp/context bs=1000 skip=20 count=1 2>/dev/null | md5sum)" "$(md5sum < /tmp/piece)"
  : > $id/context
  check "truncating empties it" "" "$(cat $id/context)"

  # The rest needs what only 9P2000.L has: numbers for errors, and reads that may answer less than was asked for.
  [ $version = 9p2000.L ] || { echo kill > $id/ctl; cd /; return; }

  # A follower blocks; everything else goes on, and what it waits for arrives.
  cat agents/events > /tmp/events &
  follower=$!
  sleep 1
  echo 'while followed' > $id/in
  cat $id/wait > /dev/null
  sleep 1
  kill $follower
  wait $follower 2>/dev/null
  check "a follower sees the turn" 1 "$(grep -c '"TurnEnd"' /tmp/events)"
  check "killing a blocked reader leaves the mount usable" idle "$(cat $id/state)"

  check "nothing can be made" "Operation not supported" "$(refusal mkdir made)"
  check "nothing can be linked" "Operation not supported" "$(refusal ln -s list linked)"
  check "an unknown name is unknown" "No such file or directory" "$(refusal cat nothing)"
  check "a wrong word is refused" 1 "$(echo nonsense 2>/dev/null > $id/ctl; echo $?)"
  check "a killed session is gone" "No such file or directory" "$(echo kill > $id/ctl; refusal cat $id/state)"
  cd /
}

for version in 9p2000.L 9p2000; do
  alias=guest$(echo $version | tr -dc '0-9L')
  if mount -t 9p -o trans=tcp,port=564,version=$version,uname=root,access=any,cache=none,msize=65536 10.0.2.100 /mnt; then
    use_the_tree
    check "the tree is unmounted" 0 "$(umount /mnt; echo $?)"
  else
    check "the tree is mounted" yes no
  fi
done
echo finished
poweroff -f
