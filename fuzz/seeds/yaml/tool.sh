# Name: x
# Description: y
echo
