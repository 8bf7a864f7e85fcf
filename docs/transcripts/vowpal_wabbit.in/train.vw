1 2 'ad0 |page site=news |user device=phone hour:0.01
-1 'ad1 |page site=mail |user device=phone hour:0.05
-1 'ad2 |page site=mail |user device=desk hour:0.76
1 'ad3 |page site=mail |user device=desk hour:0.81
1 'ad4 |page site=shop |user device=desk hour:0.7
1 'ad5 |page site=shop |user device=desk hour:0.26
-1 'ad6 |page site=news |user device=desk hour:0.75
1 'ad7 |page site=shop |user device=desk hour:0.84
-1 'ad8 |page site=mail |user device=phone hour:0.84
-1 'ad9 |page site=shop |user device=phone hour:0.52
1 2 'ad10 |page site=mail |user device=desk hour:0.67
-1 'ad11 |page site=mail |user device=desk hour:0.95
1 'ad12 |page site=news |user device=desk hour:0.66
-1 'ad13 |page site=shop |user device=phone hour:0.59
-1 'ad14 |page site=shop |user device=desk hour:0.09
1 'ad15 |page site=news |user device=phone hour:0.18
-1 'ad16 |page site=mail |user device=phone hour:0.18
-1 'ad17 |page site=mail |user device=phone hour:0.33
1 'ad18 |page site=shop |user device=desk hour:0.61
1 'ad19 |page site=shop |user device=phone hour:0.8
1 2 'ad20 |page site=news |user device=phone hour:0.64
1 'ad21 |page site=news |user device=phone hour:0.65
1 'ad22 |page site=mail |user device=desk hour:0.43
-1 'ad23 |page site=shop |user device=phone hour:0.42
1 'ad24 |page site=news |user device=desk hour:0.83
1 'ad25 |page site=shop |user device=desk hour:0.04
-1 'ad26 |page site=news |user device=desk hour:0.54
-1 'ad27 |page site=news |user device=desk hour:0.98
1 'ad28 |page site=news |user device=phone hour:0.14
1 'ad29 |page site=news |user device=phone hour:0.6
1 2 'ad30 |page site=shop |user device=desk hour:0.77
-1 'ad31 |page site=mail |user device=phone hour:0.45
-1 'ad32 |page site=mail |user device=desk hour:0.01
1 'ad33 |page site=shop |user device=desk hour:0.82
-1 'ad34 |page site=news |user device=phone hour:0.74
1 'ad35 |page site=mail |user device=desk hour:0.65
1 'ad36 |page site=mail |user device=desk hour:0.28
1 'ad37 |page site=shop |user device=desk hour:0.42
1 'ad38 |page site=shop |user device=phone hour:0.31
1 'ad39 |page site=news |user device=phone hour:0.09
1 2 'ad40 |page site=shop |user device=desk hour:0.71
1 'ad41 |page site=news |user device=phone hour:0.82
-1 'ad42 |page site=news |user device=desk hour:0.32
-1 'ad43 |page site=mail |user device=desk hour:0.07
-1 'ad44 |page site=shop |user device=phone hour:0.91
-1 'ad45 |page site=news |user device=desk hour:0.21
-1 'ad46 |page site=mail |user device=phone hour:0.41
-1 'ad47 |page site=shop |user device=desk hour:0.86
1 'ad48 |page site=news |user device=phone hour:0.72
-1 'ad49 |page site=shop |user device=phone hour:0.48
-1 2 'ad50 |page site=shop |user device=phone hour:0.75
-1 'ad51 |page site=shop |user device=phone hour:0.18
1 'ad52 |page site=shop |user device=desk hour:0.72
1 'ad53 |page site=news |user device=phone hour:0.98
1 'ad54 |page site=shop |user device=desk hour:0.34
-1 'ad55 |page site=news |user device=desk hour:0.71
-1 'ad56 |page site=shop |user device=phone hour:0.56
-1 'ad57 |page site=news |user device=desk hour:0.53
1 'ad58 |page site=mail |user device=desk hour:0.31
1 'ad59 |page site=news |user device=phone hour:0.38
-1 2 'ad60 |page site=shop |user device=phone hour:0.85
-1 'ad61 |page site=shop |user device=phone hour:0.43
1 'ad62 |page site=shop |user device=desk hour:0.96
-1 'ad63 |page site=shop |user device=phone hour:0.19
-1 'ad64 |page site=mail |user device=phone hour:0.86
-1 'ad65 |page site=news |user device=desk hour:0.39
1 'ad66 |page site=mail |user device=desk hour:0.14
-1 'ad67 |page site=news |user device=desk hour:0.03
1 'ad68 |page site=shop |user device=desk hour:0.19
-1 'ad69 |page site=news |user device=desk hour:0.58
-1 2 'ad70 |page site=mail |user device=desk hour:0.69
1 'ad71 |page site=news |user device=phone hour:0.71
-1 'ad72 |page site=mail |user device=phone hour:0.13
1 'ad73 |page site=mail |user device=desk hour:0.73
-1 'ad74 |page site=mail |user device=phone hour:0.14
1 'ad75 |page site=news |user device=desk hour:0.95
1 'ad76 |page site=news |user device=phone hour:0.48
-1 'ad77 |page site=mail |user device=phone hour:0.35
-1 'ad78 |page site=news |user device=phone hour:0.22
-1 'ad79 |page site=news |user device=desk hour:0.62
1 2 'ad80 |page site=shop |user device=desk hour:0.93
-1 'ad81 |page site=news |user device=desk hour:0.04
1 'ad82 |page site=news |user device=phone hour:0.63
1 'ad83 |page site=news |user device=phone hour:0.95
1 'ad84 |page site=news |user device=phone hour:0.94
-1 'ad85 |page site=shop |user device=phone hour:0.78
1 'ad86 |page site=news |user device=phone hour:0.5
-1 'ad87 |page site=news |user device=desk hour:0.1
1 'ad88 |page site=mail |user device=desk hour:0.64
-1 'ad89 |page site=news |user device=desk hour:0.05
1 2 'ad90 |page site=mail |user device=desk hour:0.13
1 'ad91 |page site=news |user device=phone hour:0.93
1 'ad92 |page site=news |user device=desk hour:0.49
1 'ad93 |page site=news |user device=phone hour:0.63
-1 'ad94 |page site=news |user device=phone hour:0.98
1 'ad95 |page site=shop |user device=desk hour:0.47
-1 'ad96 |page site=mail |user device=phone hour:0.86
-1 'ad97 |page site=news |user device=desk hour:0.01
-1 'ad98 |page site=mail |user device=phone hour:0.82
-1 'ad99 |page site=shop |user device=phone hour:0.71
-1 2 'ad100 |page site=mail |user device=desk hour:0.12
1 'ad101 |page site=mail |user device=desk hour:0.71
-1 'ad102 |page site=shop |user device=desk hour:0.53
1 'ad103 |page site=shop |user device=desk hour:0.92
-1 'ad104 |page site=shop |user device=phone hour:0.69
1 'ad105 |page site=shop |user device=desk hour:0.79
-1 'ad106 |page site=news |user device=desk hour:0.1
1 'ad107 |page site=shop |user device=desk hour:0.83
-1 'ad108 |page site=mail |user device=phone hour:0.62
-1 'ad109 |page site=news |user device=desk hour:0.41
-1 2 'ad110 |page site=shop |user device=phone hour:0.47
1 'ad111 |page site=mail |user device=desk hour:0.63
1 'ad112 |page site=shop |user device=desk hour:0.66
-1 'ad113 |page site=shop |user device=phone hour:0.65
1 'ad114 |page site=news |user device=phone hour:0.62
1 'ad115 |page site=mail |user device=desk hour:0.21
-1 'ad116 |page site=mail |user device=desk hour:0.06
1 'ad117 |page site=mail |user device=desk hour:0.42
-1 'ad118 |page site=mail |user device=desk hour:0.64
1 'ad119 |page site=news |user device=phone hour:0.94
-1 2 'ad120 |page site=news |user device=desk hour:0.94
1 'ad121 |page site=shop |user device=phone hour:0.98
-1 'ad122 |page site=shop |user device=phone hour:0.51
-1 'ad123 |page site=shop |user device=phone hour:0.32
1 'ad124 |page site=news |user device=phone hour:0.65
-1 'ad125 |page site=news |user device=desk hour:0.14
-1 'ad126 |page site=mail |user device=phone hour:0.07
1 'ad127 |page site=mail |user device=desk hour:0.91
1 'ad128 |page site=news |user device=phone hour:0.05
1 'ad129 |page site=mail |user device=desk hour:0.11
-1 2 'ad130 |page site=shop |user device=phone hour:0.58
1 'ad131 |page site=mail |user device=desk hour:0.51
-1 'ad132 |page site=news |user device=desk hour:0.88
-1 'ad133 |page site=mail |user device=phone hour:0.29
-1 'ad134 |page site=shop |user device=phone hour:0.97
-1 'ad135 |page site=news |user device=desk hour:0.3
-1 'ad136 |page site=news |user device=desk hour:0.39
-1 'ad137 |page site=news |user device=desk hour:0.36
-1 'ad138 |page site=mail |user device=desk hour:0.37
-1 'ad139 |page site=shop |user device=phone hour:0.92
-1 2 'ad140 |page site=shop |user device=phone hour:0.41
-1 'ad141 |page site=mail |user device=phone hour:0.68
-1 'ad142 |page site=shop |user device=phone hour:0.31
1 'ad143 |page site=mail |user device=phone hour:0.78
1 'ad144 |page site=shop |user device=phone hour:0.7
-1 'ad145 |page site=mail |user device=phone hour:0.31
-1 'ad146 |page site=news |user device=desk hour:0.97
-1 'ad147 |page site=mail |user device=phone hour:0.98
1 'ad148 |page site=news |user device=phone hour:0.67
1 'ad149 |page site=news |user device=phone hour:0.73
1 2 'ad150 |page site=shop |user device=desk hour:0.34
1 'ad151 |page site=news |user device=phone hour:0.28
1 'ad152 |page site=news |user device=phone hour:0.47
-1 'ad153 |page site=news |user device=desk hour:0.21
-1 'ad154 |page site=shop |user device=phone hour:0.77
-1 'ad155 |page site=news |user device=desk hour:0.38
1 'ad156 |page site=news |user device=phone hour:0.67
1 'ad157 |page site=shop |user device=desk hour:0.7
1 'ad158 |page site=news |user device=desk hour:0.37
-1 'ad159 |page site=mail |user device=desk hour:0.25
-1 2 'ad160 |page site=mail |user device=desk hour:0.89
1 'ad161 |page site=mail |user device=desk hour:0.03
1 'ad162 |page site=news |user device=phone hour:0.41
1 'ad163 |page site=shop |user device=desk hour:0.79
1 'ad164 |page site=mail |user device=desk hour:0.88
-1 'ad165 |page site=mail |user device=phone hour:0.45
-1 'ad166 |page site=news |user device=desk hour:0.11
1 'ad167 |page site=shop |user device=phone hour:0.86
-1 'ad168 |page site=news |user device=desk hour:0.94
1 'ad169 |page site=mail |user device=desk hour:0.26
-1 2 'ad170 |page site=mail |user device=desk hour:0.02
-1 'ad171 |page site=news |user device=desk hour:0.63
-1 'ad172 |page site=news |user device=desk hour:0.44
1 'ad173 |page site=shop |user device=phone hour:0.29
-1 'ad174 |page site=news |user device=desk hour:0.83
-1 'ad175 |page site=news |user device=desk hour:0.85
-1 'ad176 |page site=news |user device=desk hour:0.16
-1 'ad177 |page site=news |user device=desk hour:0.91
1 'ad178 |page site=news |user device=phone hour:0.5
1 'ad179 |page site=mail |user device=desk hour:0.45
-1 2 'ad180 |page site=shop |user device=phone hour:0.9
-1 'ad181 |page site=mail |user device=phone hour:0.58
1 'ad182 |page site=shop |user device=desk hour:0.73
-1 'ad183 |page site=mail |user device=phone hour:0.84
1 'ad184 |page site=mail |user device=phone hour:0.99
1 'ad185 |page site=news |user device=phone hour:0.49
1 'ad186 |page site=news |user device=phone hour:0.87
-1 'ad187 |page site=news |user device=desk hour:0.02
-1 'ad188 |page site=shop |user device=phone hour:0.39
1 'ad189 |page site=news |user device=phone hour:0.32
1 2 'ad190 |page site=shop |user device=desk hour:0.91
-1 'ad191 |page site=shop |user device=phone hour:0.36
-1 'ad192 |page site=news |user device=desk hour:0.82
1 'ad193 |page site=shop |user device=phone hour:0.19
1 'ad194 |page site=news |user device=phone hour:0.69
-1 'ad195 |page site=shop |user device=phone hour:0.01
-1 'ad196 |page site=mail |user device=phone hour:1.0
1 'ad197 |page site=news |user device=phone hour:0.4
1 'ad198 |page site=mail |user device=desk hour:0.22
1 'ad199 |page site=news |user device=desk hour:0.97
1 2 'ad200 |page site=mail |user device=desk hour:0.03
-1 'ad201 |page site=shop |user device=phone hour:0.53
1 'ad202 |page site=shop |user device=desk hour:0.16
1 'ad203 |page site=mail |user device=desk hour:0.77
1 'ad204 |page site=mail |user device=desk hour:0.57
1 'ad205 |page site=shop |user device=phone hour:0.89
1 'ad206 |page site=shop |user device=desk hour:0.44
-1 'ad207 |page site=shop |user device=phone hour:0.44
1 'ad208 |page site=news |user device=phone hour:0.86
1 'ad209 |page site=shop |user device=phone hour:0.37
-1 2 'ad210 |page site=news |user device=desk hour:0.36
-1 'ad211 |page site=shop |user device=phone hour:0.9
-1 'ad212 |page site=mail |user device=phone hour:0.89
-1 'ad213 |page site=mail |user device=phone hour:0.9
1 'ad214 |page site=news |user device=desk hour:0.79
1 'ad215 |page site=news |user device=desk hour:0.93
1 'ad216 |page site=mail |user device=desk hour:0.93
-1 'ad217 |page site=shop |user device=phone hour:0.59
-1 'ad218 |page site=shop |user device=phone hour:0.68
1 'ad219 |page site=shop |user device=phone hour:0.23
-1 2 'ad220 |page site=news |user device=desk hour:0.2
1 'ad221 |page site=news |user device=phone hour:0.6
-1 'ad222 |page site=news |user device=desk hour:0.19
1 'ad223 |page site=mail |user device=desk hour:0.21
1 'ad224 |page site=shop |user device=phone hour:0.2
1 'ad225 |page site=shop |user device=desk hour:0.34
-1 'ad226 |page site=mail |user device=phone hour:0.48
1 'ad227 |page site=shop |user device=desk hour:0.14
1 'ad228 |page site=shop |user device=desk hour:0.88
-1 'ad229 |page site=shop |user device=phone hour:0.19
1 2 'ad230 |page site=news |user device=phone hour:0.52
-1 'ad231 |page site=news |user device=phone hour:0.2
-1 'ad232 |page site=mail |user device=phone hour:0.48
-1 'ad233 |page site=shop |user device=phone hour:0.95
-1 'ad234 |page site=mail |user device=phone hour:0.68
-1 'ad235 |page site=news |user device=desk hour:0.11
1 'ad236 |page site=news |user device=phone hour:0.82
-1 'ad237 |page site=mail |user device=phone hour:0.3
1 'ad238 |page site=mail |user device=desk hour:0.35
1 'ad239 |page site=shop |user device=phone hour:0.87
1 2 'ad240 |page site=mail |user device=desk hour:0.87
-1 'ad241 |page site=shop |user device=phone hour:0.24
1 'ad242 |page site=shop |user device=desk hour:0.82
1 'ad243 |page site=news |user device=phone hour:0.9
1 'ad244 |page site=news |user device=phone hour:0.71
1 'ad245 |page site=shop |user device=desk hour:0.34
-1 'ad246 |page site=mail |user device=phone hour:0.9
-1 'ad247 |page site=news |user device=desk hour:0.46
-1 'ad248 |page site=mail |user device=desk hour:0.86
-1 'ad249 |page site=news |user device=desk hour:0.13
-1 2 'ad250 |page site=mail |user device=phone hour:0.21
1 'ad251 |page site=mail |user device=phone hour:0.13
1 'ad252 |page site=news |user device=desk hour:0.4
1 'ad253 |page site=shop |user device=phone hour:0.88
-1 'ad254 |page site=shop |user device=phone hour:0.17
1 'ad255 |page site=shop |user device=desk hour:0.28
1 'ad256 |page site=shop |user device=desk hour:0.44
1 'ad257 |page site=shop |user device=desk hour:0.98
1 'ad258 |page site=news |user device=desk hour:0.64
1 'ad259 |page site=news |user device=phone hour:0.5
-1 2 'ad260 |page site=news |user device=desk hour:0.32
1 'ad261 |page site=mail |user device=desk hour:0.89
1 'ad262 |page site=news |user device=phone hour:0.21
-1 'ad263 |page site=mail |user device=phone hour:0.03
-1 'ad264 |page site=mail |user device=phone hour:0.79
-1 'ad265 |page site=mail |user device=phone hour:0.57
-1 'ad266 |page site=mail |user device=phone hour:0.86
1 'ad267 |page site=news |user device=phone hour:0.37
1 'ad268 |page site=news |user device=phone hour:0.16
-1 'ad269 |page site=news |user device=desk hour:0.67
-1 2 'ad270 |page site=mail |user device=phone hour:0.35
1 'ad271 |page site=news |user device=phone hour:0.27
1 'ad272 |page site=shop |user device=desk hour:0.42
1 'ad273 |page site=news |user device=phone hour:0.33
1 'ad274 |page site=mail |user device=desk hour:0.8
-1 'ad275 |page site=news |user device=desk hour:0.52
1 'ad276 |page site=news |user device=phone hour:0.29
1 'ad277 |page site=news |user device=phone hour:0.55
1 'ad278 |page site=mail |user device=desk hour:0.38
1 'ad279 |page site=shop |user device=phone hour:0.92
1 2 'ad280 |page site=shop |user device=desk hour:0.08
-1 'ad281 |page site=news |user device=desk hour:0.58
1 'ad282 |page site=shop |user device=desk hour:0.08
-1 'ad283 |page site=shop |user device=phone hour:0.11
-1 'ad284 |page site=shop |user device=phone hour:0.04
-1 'ad285 |page site=mail |user device=phone hour:0.78
1 'ad286 |page site=news |user device=phone hour:0.52
1 'ad287 |page site=news |user device=phone hour:0.67
1 'ad288 |page site=news |user device=phone hour:0.92
1 'ad289 |page site=mail |user device=desk hour:0.9
1 2 'ad290 |page site=shop |user device=desk hour:0.36
-1 'ad291 |page site=mail |user device=phone hour:0.58
-1 'ad292 |page site=news |user device=desk hour:0.56
1 'ad293 |page site=news |user device=phone hour:0.51
1 'ad294 |page site=mail |user device=phone hour:0.45
1 'ad295 |page site=shop |user device=desk hour:0.71
1 'ad296 |page site=mail |user device=desk hour:0.37
-1 'ad297 |page site=mail |user device=desk hour:0.05
-1 'ad298 |page site=shop |user device=phone hour:0.42
-1 'ad299 |page site=news |user device=desk hour:0.28
