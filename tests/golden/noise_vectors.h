/* tests/golden/noise_vectors.h -- test vectors of the Noise protocol: the pattern XX, and XX with
 * pre-shared keys.
 *
 * Values are hexadecimal, as in the vector files of the Noise wiki. The two ends send the messages
 * of a vector in turn, the initiator first. The first three are handshake messages, and the others
 * transport messages. An empty handshake_hash means that the source does not state the hash.
 * Sources:
 *   Noise_XX_25519_ChaChaPoly_SHA256: public test vectors of the Noise community (cacophony)
 *   Noise_XX_25519_ChaChaPoly_SHA256: public test vectors of the Noise community (snow)
 *   Noise_XXpsk0+psk1_25519_ChaChaPoly_SHA256: public test vectors of the Noise community (snow)
 *   Noise_XXpsk0+psk2_25519_ChaChaPoly_SHA256: public test vectors of the Noise community (snow)
 *   Noise_XXpsk0+psk3_25519_ChaChaPoly_SHA256: public test vectors of the Noise community (snow)
 *   Noise_XXpsk0_25519_ChaChaPoly_SHA256: own, written by a
 *     second implementation (Python) that reproduces the public vectors
 */
#ifndef TESTS_GOLDEN_NOISE_VECTORS_H
#define TESTS_GOLDEN_NOISE_VECTORS_H

struct noise_vector
{
    const char *name, *handshake_hash;
    const char *init_prologue, *init_static, *init_ephemeral, *init_psks[2];
    const char *resp_prologue, *resp_static, *resp_ephemeral, *resp_psks[2];
    struct { const char *payload, *ciphertext; } messages[8]; /* A NULL payload ends the list. */
};

static const struct noise_vector noise_vectors[] = {
    {.name = "Noise_XX_25519_ChaChaPoly_SHA256",
     .handshake_hash = "c8e5f64e846193be2a834104c2a009868d6c9f3bd3c186299888b488b2f1f58e",
     .init_prologue = "4a6f686e2047616c74",
     .init_static = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
     .init_ephemeral = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
     .resp_prologue = "4a6f686e2047616c74",
     .resp_static = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
     .resp_ephemeral = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
     .messages = {{"4c756477696720766f6e204d69736573",
                   "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
                   "4c756477696720766f6e204d69736573"},
                  {"4d757272617920526f746862617264",
                   "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
                   "81cbad1f276e038c48378ffce2b65285e08d6b68aaa3629a5a8639392490e5b9"
                   "bd5269c2f1e4f488ed8831161f19b7815528f8982ffe09be9b5c412f8a0db50f"
                   "8814c7194e83f23dbd8d162c9326ad"},
                  {"462e20412e20486179656b",
                   "c7195ffacac1307ff99046f219750fc47693e23c3cb08b89c2af808b444850a8"
                   "0ae475b9df0f169ae80a89be0865b57f58c9fea0d4ec82a286427402f113e4b6"
                   "ae769a1d95941d49b25030"},
                  {"4361726c204d656e676572",
                   "96763ed773f8e47bb3712f0e29b3060ffc956ffc146cee53d5e1df"},
                  {"4a65616e2d426170746973746520536179",
                   "3e40f15f6f3a46ae446b253bf8b1d9ffb6ed9b174d272328ff91a7e2e5c79c07"
                   "f5"},
                  {"457567656e2042f6686d20766f6e2042617765726b",
                   "eb3f3515110702e047a6c9da4478b6ead94873c11c0f2d710ddb3f09fce024b3"
                   "a58502ae3f"}}},
    {.name = "Noise_XX_25519_ChaChaPoly_SHA256",
     .handshake_hash = "",
     .init_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .init_static = "7dec208517a3b81a2861d7a71266d5d6dc944c5a8816634a86fe63198a0148ee",
     .init_ephemeral = "a32daf21e93c0131495ce1d903181fde81cc46937daaeb990bae7c992709421e",
     .resp_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .resp_static = "4d0aed5098e3b4ef20357e9f686ce66204c792b358da2e475017d6c485304881",
     .resp_ephemeral = "4eece0f195d026db035ff987597c429d3ad3bcc2944df37d649528951b2a27c5",
     .messages = {{"d03c489139e645d0711a3c9e810d776b46a84912463fafa87b884eebf242dc34",
                   "f9fa868ba97ab8a2686deccfaad5a484ee10a5bb85e3d1dce015a84797f92818"
                   "d03c489139e645d0711a3c9e810d776b46a84912463fafa87b884eebf242dc34"},
                  {"d8190a92f7dc0c93dbea9118ba8055751fb7c6590c416ffbd419964132b99a85",
                   "8c4e6fdb7d09d501a86f7eca5c234522751706ed409182c05cdf5f827d4dae47"
                   "b81c6c5f43b025692c24391eefee725c17d8cb0fbe3e4abb8aedf42c4fd2592d"
                   "4ea48ac08989d6ae8b4adae08b2c34087c808c7aa55a63c02b0fab9e93061233"
                   "6bd43eaea04d3c670a0a146691aa9cc9d357872320dc735dbc48580cffb553db"},
                  {"77891b19dcb92ef7c055b672c4a5aa7fdf1c84146b8b303459022729473ce254",
                   "933ca6b5ed60df3df66121f0ab49a09e49efa45c613a86a3cecbf4c535cef2f8"
                   "3f72b42837b18e3572f2fdc2b74c331e2368a545cef54bdca081678ab0e9dd53"
                   "48122459e0c034c851984d88ce610963d43cde6cfe73a67fbd5a63e8bfca96d0"},
                  {"d7efdf988072881941db045a42882433817555128fbf5663e56081712ec7d212",
                   "54ef0ff0629e1aaa7685a2806ab111cba76b52331f2642276736f415868eacb6"
                   "9ab2577f3bda0cbf72f879685f6ed25f"},
                  {"dd7bf01a588bafb52c6cfba952e5d8fe35cc2b3f92b4730ae2474615157345ce",
                   "356be70f110306d5c699bb834bb9d58d909e325924dfbec972e406e6f294dc63"
                   "e1daebefe8a62a334facc8048ab4ad66"}}},
    {.name = "Noise_XXpsk0+psk1_25519_ChaChaPoly_SHA256",
     .handshake_hash = "",
     .init_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .init_static = "aa21af42d67309d493b4e414a7a34c44dec3cdb4bad63d2b6b734bf84a4c6d27",
     .init_ephemeral = "6e21d687cf4135de4526dbf4526852ea964b5ec60c4888e0f83a2bee429cb887",
     .resp_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .resp_static = "e9d3060880b113b01ffde7909ac365e32d996de875476dc0aa98efeeac91b56d",
     .resp_ephemeral = "f2287c0cde7fb074b1a690b2094f3602c438e20665891e1c95dad86b4508218f",
     .init_psks = {"bee348b1638a375362e1b5c645cc9a9e934a928eb6ab73c113b8f8ccde2de2be", "4084de28ded861744bda7d3f06a13c914172939f2932315b0080c683c06681c9"},
     .resp_psks = {"bee348b1638a375362e1b5c645cc9a9e934a928eb6ab73c113b8f8ccde2de2be", "4084de28ded861744bda7d3f06a13c914172939f2932315b0080c683c06681c9"},
     .messages = {{"07153c5cd95b57fd0dec60adb95a4b2bedf483a6abcad8356831ba701681c20f",
                   "ce13e92d9e3ee2522bb03753ab14ac8d3691bfb818b810b3773e388d7fe8921a"
                   "04abac10a744c7f449a0ab548731962c98b3dec6454b48a8e8cd3b658022890d"
                   "37b16e99b58423eaa743522617d121cf"},
                  {"155f514a7d093d27b80816054f6a7abafdcecfa8925ef8b164e96d32206e038a",
                   "e63cb59f62daea306d6ea919a66d1eb300db4b59dbab96411dd3cb35389cc95a"
                   "895f9e7d5d4c2c63a9c30a588efe49a80a1e3d11959620b2ebc3c39e527ac815"
                   "bf56877ae7804ad4e90554a410da8faabbaf639640fd9320b5b10efdd3b7c754"
                   "1e4c18145e14f4c0506174ec350723e2dfc813085f47db08f45d0d53053fa0d6"},
                  {"8000f3d9c46951658742a221829131a054779ec38a9f12bd5853e67a98f10974",
                   "754b3ec122dc54f3422a6aec1bb898866e865c96e2539b5008741f32c37f8c2b"
                   "55f209d9ba8e233e6242f6bf0981c15cd0e2f1129d41f0a1f038e7e5fcb93d72"
                   "eb911f3172096aaac5d4f4a3b5f19a9a1130e74198b87f78fc54a09e59474f5b"},
                  {"5fe0c370a8f61d2de40f4f4af045f0b9d541d3eefd5664ad479b3703d5daa8dd",
                   "f8b8bfe891ae6f5e0ce2aa535645382dc2512fcc4f9976d136f6673152e5cd1f"
                   "5c13e7c5fae98d45f65edcd686826d3d"},
                  {"1b901b12c2d06566fb09ac9e991057f7ddfe412b3e45ea9bc251efbb116b0a3f",
                   "6734b991152cc839026cbafe6a20a0131dcdf4dc70aca8e1d4bcf2c8a0e6d057"
                   "cbb5ce40445f553f98268ef91b44605a"}}},
    {.name = "Noise_XXpsk0+psk2_25519_ChaChaPoly_SHA256",
     .handshake_hash = "",
     .init_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .init_static = "fd28f510059fa385041b770b2032c3eedd38881f13f71edadcb0ef77e8ef47e2",
     .init_ephemeral = "6b3d5e5b6d4fc2f5ea2448f983a0d5a964c09e692cfe420fc77728379603aa01",
     .resp_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .resp_static = "2641e488c334f2555d015de274bd88b7f9c5080b50ba74c85e1679643deb8380",
     .resp_ephemeral = "760e929deb26d8625890d8b97f6ce130b74291f61b8fe2c739f1ff1118d69143",
     .init_psks = {"6560967d92f5664b2e532bcdf9c4b70ed2df9ff68952935e80000519393faa0c", "059cb635049e07a251555913c69a59dc5feed54326edd491b24f06980c27ef5e"},
     .resp_psks = {"6560967d92f5664b2e532bcdf9c4b70ed2df9ff68952935e80000519393faa0c", "059cb635049e07a251555913c69a59dc5feed54326edd491b24f06980c27ef5e"},
     .messages = {{"73dcb3878d07523f3080b45cfd8c03cfd3e1608c78ce757c4df141b00aa17e84",
                   "ef67c488c7019488a601d909371ce7b9829ba88f358991a3a11d7d6b16d69834"
                   "55e258ad0908ac4aed20f82d8e2d30d1cd0f47f1e3325a9401ba29df51b2bbd9"
                   "37f51ee331c382118971f14f9057710e"},
                  {"af9cb1e3b7cf4b3cf8b7a07c33f81a125d8b7be0af956058c114eca72510fe6b",
                   "eaebbfd67c64005b307967066c365fc4a6f24ceec0b317d2178b46023db55323"
                   "a785a593f6ada8e4f8462b421ee4c3970568f9a148587c88234bfafe5a68e31c"
                   "f412d0f1dc967cbaad4c5b0629c623e79f256a9ca6bf896368f1c382cd6d756f"
                   "4e6e9c8ab32d1ce99cd845ea7c8f433692f2a1a6778f3c7d56733ffd45162f20"},
                  {"d749df69bbb40d7e85053e6772b2e29721d8b64819f0ca02ade3e99998b6198d",
                   "e01dd93a14a2f85bc472208df89d4a7090eaef90c377dd36a29639e1966f60e4"
                   "47e4969d33052c774c1b2bd0220b25c35539a8772399eea39d3f3284495a44dc"
                   "7c27bd275efdbd03635185143faf0e97843e39e692983ab72f177df3ffa0b4cf"},
                  {"783b068dc37bbcf23fa78044125864c5a4d5907f4051dad4ffc90245a73eca9c",
                   "6e3bdcac0d6408c0f1e07a95cbde5b417267238e5789bb6b049910cd3e4e3595"
                   "9881cd5eb908bfd444c83186867393f3"},
                  {"b767ded74f2ff8ec6c48c6b6102f0002fc73017e85510c43d465c06df78ff458",
                   "ee11ee23a8061783b4cfd7cd7eea7d394e2c12bb85217eadb6348044041f2b7e"
                   "a195e8fb3f6c539ae7b7f9e9c49326d0"}}},
    {.name = "Noise_XXpsk0+psk3_25519_ChaChaPoly_SHA256",
     .handshake_hash = "",
     .init_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .init_static = "e9c2c125ba62723d19c2a666ca87e4aea7997e7086d724715e647cbb7e3dced9",
     .init_ephemeral = "0b8e02c4bdd7a4f00d5cec49d2418aa4c50fce820d851039a18f5d603c2c38b9",
     .resp_prologue = "5468657265206973206e6f20726967687420616e642077726f6e672e20546865"
         "72652773206f6e6c792066756e20616e6420626f72696e672e",
     .resp_static = "a56eff6ea4b13103cbff6f68e18d23c15476259b8eaf3a7636f64c08f431969f",
     .resp_ephemeral = "e09e1b02aa28340c45132a19675a7386f24dfe3700905bdb67b1554486661c44",
     .init_psks = {"3829658d61de7c60129328910df4e4cdee261f7b9cb1aa2a326bd50dead817df", "3b9b4c7f360b3dbea6511b2287dfe76180049f5127c27fb3376ae514732ce40f"},
     .resp_psks = {"3829658d61de7c60129328910df4e4cdee261f7b9cb1aa2a326bd50dead817df", "3b9b4c7f360b3dbea6511b2287dfe76180049f5127c27fb3376ae514732ce40f"},
     .messages = {{"151cb17403c63f2a7c4be662f989854aaf727c61222c78a6eda9b1cd9a4ef884",
                   "e29aafc005c2d034941ecc120973bdc81778728c10d6bbea5df041e2b2ed7907"
                   "3a1bc0b8a4cbac3893b9621f2376ebc78eef4286ec65239ec4329d07639ca6cd"
                   "a0f1072dc24f0c6efe905e8d3a261d94"},
                  {"20513d30ac69774a37b8dd80a145d179eca53ec26ddd26193acfc7857bc42244",
                   "9f6c1d9af2b8d64e8338ad1692972ac72fbd2172e41c2c226986e9e25cfa8620"
                   "1701845f5357d91e3ef9cb17dd3d18b95394375f2a099d7013c269bb10b81310"
                   "3bbf5f3a52a4422d4e48be3cf6d9aa07fa2066438390f994a71d646133cfb034"
                   "fcfe9220b80f52ba771850ad23c938fcf10f11a15c5b81ccf6b2941b20c53907"},
                  {"6a71df147bbab68e95003fb62d8065bb57f3c7266310b0644f00f3fd52790815",
                   "337634cb103903adcb05a30c70f37a1dd1a7bd2b31ba35c1607fd915075f13b5"
                   "0d95d834bc82c211f871af87426ac1e05865b6bdd1e31363b6bc51e5c9164ec2"
                   "116c77b5117e7b662f8a52aaed936d3b7146399ec385d873f0ce4bc4887ebe6b"},
                  {"639f40d22a8e4f00ba46cef25a28bc7fe6143cd89473f0c920e0af9bea202a39",
                   "249a5f6477c311ca2645ba0c8a5a51232dabf86226cda8d2536407022129718f"
                   "a4641012f83394f9375a070574e2a2e0"},
                  {"8641662e37ba2b7dfb3ba24fb1620b70a9e7118efa41b5fefd74f82d217f6b83",
                   "e6a34abea461f8bbce42f1f4be7d46661bd1d846a0c588dac03cc29f133955d9"
                   "1286b43132458484412663ebb127107e"}}},
    {.name = "Noise_XXpsk0_25519_ChaChaPoly_SHA256",
     .handshake_hash = "6ad0a8e9148358f7cd2865815c02e0a165a8d3a6551997c722cf945ee639f7e0",
     .init_prologue = "686561727361792f31",
     .init_static = "bd7ed5779c49eb5dd8823c3f0ed4d3fce2723cc45d8e00b92fe5954a630112cc",
     .init_ephemeral = "ea14aeb3052b5ba0a995b65f5f28f9bd2c497520e6b51f649b919c2fdf177a1a",
     .resp_prologue = "686561727361792f31",
     .resp_static = "a96d2df938d02e11c1df7de776265c4b384da3dc7066b5108c3d0a74bf2d3c63",
     .resp_ephemeral = "aa1c850bad1d59d4d88da62937b599fdd3cfc0b0ccb8678e8bb076db411128b7",
     .init_psks = {"2c1ff9b4bb762e76fadc7458f9d172cdfe164742b5ccf4e3eeb1cad9a5f6cdc8"},
     .resp_psks = {"2c1ff9b4bb762e76fadc7458f9d172cdfe164742b5ccf4e3eeb1cad9a5f6cdc8"},
     .messages = {{"",
                   "4b1809e17b93dd18df826d26a835069f1a19b2a0f6184cc841103a5f4b55e922"
                   "373581283bdf761eedca929f3d184f66"},
                  {"726573706f6e6465722068656c6c6f",
                   "52452c811b8ce42cb212939e1a9b09582b8d31f61cc5a499bee91c8eb615160a"
                   "d142fa1e72bd2bfa558d69a4d610621ba518adca472d8c514f77a6943ea1e90f"
                   "3371e847e3829253efd813c0e502bd9ed714db6e8b0931567f16269384c95458"
                   "afcd7f82ea31b975d0f6a29c73ddbe"},
                  {"696e69746961746f722068656c6c6f",
                   "6755686eede01d1156cf5934c2de68409c3dfc7de1207080e622be711933555f"
                   "443c10d0f08974ba95717da8aea90d428a850b72bdf66fbc363ecaebee2c5fbe"
                   "b476d6568384deaebc86af778fd42f"},
                  {"",
                   "e888b8240ef653bbf30197468ab9151b"},
                  {"6669727374",
                   "2979b196461263ca1e3df372bde785a7c337ea3ed4"},
                  {"7365636f6e64",
                   "316b8baf22bed79a17ac7acd2647e44c0d912c15a6be"},
                  {"7468697264",
                   "9eb1b6ef0bc61317193c576dc403aa109d9a7f63cc"}}},
};

#endif
