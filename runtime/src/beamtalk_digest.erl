%% Primitives of Digest: hashes and keyed hashes of bytes.
-module(beamtalk_digest).

-export(['class sha256:'/2, 'class sha512:'/2, 'class md5:'/2, 'class hmacSha256:key:'/3,
         'class hmacSha512:key:'/3]).

-spec 'class sha256:'(term(), term()) -> binary().
'class sha256:'(_Class, Input) -> hash(sha256, Input, 'sha256:').

-spec 'class sha512:'(term(), term()) -> binary().
'class sha512:'(_Class, Input) -> hash(sha512, Input, 'sha512:').

-spec 'class md5:'(term(), term()) -> binary().
'class md5:'(_Class, Input) -> hash(md5, Input, 'md5:').

-spec 'class hmacSha256:key:'(term(), term(), term()) -> binary().
'class hmacSha256:key:'(_Class, Input, Key) -> keyed(sha256, Input, Key, 'hmacSha256:key:').

-spec 'class hmacSha512:key:'(term(), term(), term()) -> binary().
'class hmacSha512:key:'(_Class, Input, Key) -> keyed(sha512, Input, Key, 'hmacSha512:key:').

hash(Algorithm, Input, Selector) ->
    crypto:hash(Algorithm, beamtalk_argument:binary(Input, 'Digest', Selector)).

keyed(Algorithm, Input, Key, Selector) ->
    beamtalk_argument:binary(Input, 'Digest', Selector),
    beamtalk_argument:binary(Key, 'Digest', Selector),
    crypto:mac(hmac, Algorithm, Key, Input).
